/** A raw request: client libraries refuse to send most of these. */
export interface Raw {
  method?: string;
  path?: string;
  /**
   * Headers in addition to the default ones, such as Host, X-Service-Api-Key and Content-Length. A
   * header here replaces the default header of the same name.
   */
  headers?: [name: string, value: string][];
  body?: string | Buffer;
}

export interface Refusal {
  status: number;
  code?: string;
  param?: string;
}

const AUDIT = '"dataset_uri": "s3://bucket/key"';
const audit = (more: string): Raw => ({ body: `{${AUDIT}, ${more}}` });
const train = (body: string): Raw => ({ path: "/train", body });
const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
const invalid = (param?: string): Refusal => ({
  status: 400,
  code: "invalid_request",
  ...(param === undefined ? {} : { param }),
});
const MALFORMED: Refusal = { status: 400, code: "malformed_json" };
const KEYLESS: Refusal = { status: 403, code: "invalid_api_key" };

/** Bad requests, each with the error that it must get. */
export const WAYS: [what: string, request: Raw, refusal: Refusal][] = [
  ["cut-off JSON", { body: '{"dataset_uri": "s3:' }, MALFORMED],
  ["two JSON values", { body: `{${AUDIT}} {}` }, MALFORMED],
  ["single quotes", { body: "{'dataset_uri': 's3://b/k'}" }, MALFORMED],
  ["a comment", { body: `{${AUDIT} /* really */}` }, MALFORMED],
  ["a trailing comma", { body: `{${AUDIT},}` }, MALFORMED],
  ["NaN", audit('"priority": NaN'), MALFORMED],
  ["Infinity", audit('"priority": -Infinity'), MALFORMED],
  ["a hexadecimal number", audit('"priority": 0x10'), MALFORMED],
  [
    "bytes that are not UTF-8",
    { body: Buffer.from('{"dataset_uri": "s3://b/\xff"}', "latin1") },
    MALFORMED,
  ],
  ["UTF-16", { body: Buffer.from(`{${AUDIT}}`, "utf16le") }, MALFORMED],
  ["a raw newline in a text", audit('"notes": "a\nb"'), MALFORMED],
  ["no body", { body: "" }, invalid()],
  ["null", { body: "null" }, invalid()],
  ["an array", { body: `[{${AUDIT}}]` }, invalid()],
  ["a text", { body: '"s3://bucket/key"' }, invalid()],
  ["an empty object", { body: "{}" }, invalid("dataset_uri")],
  ["null for a field", { body: '{"dataset_uri": null}' }, invalid("dataset_uri")],
  ["a number for a text", { body: '{"dataset_uri": 1}' }, invalid("dataset_uri")],
  ["an object for a text", { body: '{"dataset_uri": {}}' }, invalid("dataset_uri")],
  ["an unknown field", audit('"dataset_url": "x"'), invalid("dataset_url")],
  ["a field of another job type", audit('"epochs": 1'), invalid("epochs")],
  [
    "the name of a field in capitals",
    { body: '{"Dataset_URI": "s3://b/k"}' },
    invalid("dataset_uri"),
  ],
  ["a name twice", { body: `{${AUDIT}, ${AUDIT}}` }, invalid("dataset_uri")],
  ["a name twice, deep", audit('"params": {"a": {"b": 1, "b": 2}}'), invalid("params.a.b")],
  ["__proto__", audit('"params": {"__proto__": {"x": 1}}'), invalid("params.__proto__")],
  ["33 levels", audit(`"params": ${deep(32)}`), invalid("params")],
  ["a hundred thousand levels", { body: "[".repeat(100_000) }, MALFORMED],
  ["a hundred thousand levels, closed", audit(`"params": ${deep(100_000)}`), invalid("params")],
  ["NUL", audit('"notes": "a\\u0000b"'), invalid("notes")],
  ["NUL in a name", audit('"params": {"a\\u0000": 1}'), invalid("params.a")],
  ["half a surrogate pair", audit('"tags": ["\\ud83d"]'), invalid("tags.0")],
  ["an infinite number", audit('"params": {"lr": 1e999}'), invalid("params.lr")],
  ["too large a priority", audit('"priority": 101'), invalid("priority")],
  ["half a priority", audit('"priority": 0.5'), invalid("priority")],
  ["a priority in a text", audit('"priority": "1"'), invalid("priority")],
  ["no attempts", audit('"max_attempts": 0'), invalid("max_attempts")],
  ["a negative time", audit('"timeout_s": -1'), invalid("timeout_s")],
  ["a time of 1e300 s", audit('"timeout_s": 1e300'), invalid("timeout_s")],
  ["33 tags", audit(`"tags": [${Array(33).fill('"t"').join()}]`), invalid("tags")],
  ["a tag that reverses text", audit('"tags": ["a\\u202eb"]'), invalid("tags.0")],
  [
    "a worker's tag that does",
    audit('"resources": {"tags": ["\\u2066a"]}'),
    invalid("resources.tags.0"),
  ],
  [
    "a GPU's name that does",
    audit('"resources": {"gpu_type": "A100\\u202e"}'),
    invalid("resources.gpu_type"),
  ],
  ["a model's name that does", train('{"dataset_id": "d", "model": "m\\u2069"}'), invalid("model")],
  ["a tag of spaces", audit('"tags": ["  "]'), invalid("tags.0")],
  ["a tag of 129 letters", audit(`"tags": ["${"x".repeat(129)}"]`), invalid("tags.0")],
  ["notes of 5,000 letters", audit(`"notes": "${"x".repeat(5000)}"`), invalid("notes")],
  ["an unknown resource", audit('"resources": {"gpus": 1}'), invalid("resources.gpus")],
  ["minus one GPU", audit('"resources": {"gpu": -1}'), invalid("resources.gpu")],
  ["resources in a list", audit('"resources": [1]'), invalid("resources")],
  ["a URI without a scheme", { body: '{"dataset_uri": "bucket/key"}' }, invalid("dataset_uri")],
  ["http", { body: '{"dataset_uri": "http://169.254.169.254/x"}' }, invalid("dataset_uri")],
  [
    "a way out of the bucket",
    { body: '{"dataset_uri": "s3://b/../../etc"}' },
    invalid("dataset_uri"),
  ],
  [
    "an encoded path traversal",
    { body: '{"dataset_uri": "s3://b/%2e%2e/etc"}' },
    invalid("dataset_uri"),
  ],
  [
    "a file of the server's",
    { body: '{"dataset_uri": "file:///etc/passwd"}' },
    invalid("dataset_uri"),
  ],
  [
    "a URI of 3,000 letters",
    { body: `{"dataset_uri": "s3://b/${"k".repeat(3000)}"}` },
    invalid("dataset_uri"),
  ],
  [
    "two names with two values",
    train('{"dataset_id": "d", "model": "a", "model_id": "b"}'),
    invalid("model_id"),
  ],
  [
    "two datasets",
    train('{"dataset_id": "d", "dataset_uri": "s3://b/k", "model": "m"}'),
    invalid("dataset_uri"),
  ],
  ["no dataset", train('{"model": "m"}'), invalid("dataset_id")],
  [
    "2^53 epochs",
    train('{"dataset_id": "d", "model": "m", "epochs": 9007199254740993}'),
    invalid("epochs"),
  ],
  ["an unknown type", { path: "/api/jobs/trian", body: "{}" }, invalid("job_type")],
  [
    "a body of 2 MiB",
    { body: `"${"x".repeat(2 ** 21)}"` },
    { status: 413, code: "body_too_large" },
  ],
  [
    "a form",
    { headers: [["Content-Type", "application/x-www-form-urlencoded"]], body: "a=1" },
    { status: 415, code: "unsupported_media_type", param: "Content-Type" },
  ],
  [
    "no content type",
    { headers: [["Content-Type", "(none)"]], body: "{}" },
    { status: 415, code: "unsupported_media_type", param: "Content-Type" },
  ],
  ["no key", { headers: [["X-Service-Api-Key", "(none)"]], body: "{" }, KEYLESS],
  [
    "another key in the other header",
    { headers: [["Authorization", "Bearer forge_user_x_00000000"]] },
    KEYLESS,
  ],
  [
    "two Authorization headers",
    {
      headers: [
        ["Authorization", "Bearer a"],
        ["Authorization", "Bearer b"],
      ],
    },
    KEYLESS,
  ],
  [
    "a key with a letter changed",
    { headers: [["X-Service-Api-Key", "forge_user_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_00000000"]] },
    KEYLESS,
  ],
  [
    "two Idempotency-Keys",
    {
      headers: [
        ["Idempotency-Key", "a"],
        ["Idempotency-Key", "b"],
      ],
      body: `{${AUDIT}}`,
    },
    invalid("Idempotency-Key"),
  ],
  [
    "an Idempotency-Key of 300 letters",
    { headers: [["Idempotency-Key", "k".repeat(300)]], body: `{${AUDIT}}` },
    invalid("Idempotency-Key"),
  ],
  [
    "an empty Idempotency-Key",
    { headers: [["Idempotency-Key", ""]], body: `{${AUDIT}}` },
    invalid("Idempotency-Key"),
  ],
  [
    "a header with a line feed in it",
    { headers: [["X-A", "a\nX-Service-Api-Key: x"]] },
    { status: 400, code: "malformed_request" },
  ],
  ["a header with NUL", { headers: [["X-A", "a\0b"]] }, { status: 400, code: "malformed_request" }],
  [
    "two lengths",
    {
      headers: [
        ["Content-Length", "2"],
        ["Content-Length", "3"],
      ],
      body: "{}",
    },
    { status: 400, code: "malformed_request" },
  ],
  [
    "a length and chunks",
    {
      headers: [
        ["Transfer-Encoding", "chunked"],
        ["Content-Length", "2"],
      ],
      body: "{}",
    },
    { status: 400, code: "malformed_request" },
  ],
  [
    "headers of 40 KB",
    { headers: [["X-A", "x".repeat(40_000)]] },
    { status: 431, code: "headers_too_large" },
  ],
  [
    "a body that never comes",
    { headers: [["Content-Length", "100"]], body: "{" },
    { status: 408, code: "request_timeout" },
  ],
  [
    "a path that can't be decoded",
    { method: "GET", path: "/api/jobs/%zz" },
    { status: 404, code: "route_not_found" },
  ],
  [
    "a way out of the path",
    { method: "GET", path: "/api/jobs/../../etc/passwd" },
    { status: 404, code: "route_not_found" },
  ],
  ["NUL in an id", { method: "GET", path: "/api/jobs/a%00b" }, invalid("job_id")],
  [
    "an id of 600 letters",
    { method: "GET", path: `/api/jobs/${"x".repeat(600)}` },
    { status: 404, code: "route_not_found" },
  ],
  [
    "SQL in an id",
    { method: "GET", path: "/api/jobs/x'%20or%20''='" },
    { status: 404, code: "job_not_found", param: "job_id" },
  ],
  [
    "a way out of an artifact",
    { method: "GET", path: "/api/artifacts/x/files/..%2f..%2fsecrets.json" },
    { status: 404, code: "artifact_not_found", param: "artifact_id" },
  ],
  ["an unknown filter", { method: "GET", path: "/api/jobs?statos=failed" }, invalid("statos")],
  ["an unknown status", { method: "GET", path: "/api/jobs?status=done" }, invalid("status")],
  ["a limit of 0", { method: "GET", path: "/api/jobs?limit=0" }, invalid("limit")],
  ["two limits", { method: "GET", path: "/api/jobs?limit=1&limit=2" }, invalid("limit")],
  ["an invalid cursor", { method: "GET", path: "/api/jobs?after=xyz" }, invalid("after")],
  [
    "yesterday",
    { method: "GET", path: "/api/jobs?created_after=yesterday" },
    invalid("created_after"),
  ],
  [
    "the year 0",
    { method: "GET", path: "/api/jobs?created_after=0000-01-01T00:00:00Z" },
    invalid("created_after"),
  ],
  ["NUL in a filter", { method: "GET", path: "/api/jobs?tag=%00" }, invalid("tag")],
  ["month 13", { method: "GET", path: "/api/billing/summary?period=2026-13" }, invalid("period")],
  [
    "the year 0 of a bill",
    { method: "GET", path: "/api/billing/summary?period=0000-01" },
    invalid("period"),
  ],
  [
    "another user's list",
    { method: "GET", path: "/api/jobs?user_id=admin" },
    { status: 403, code: "insufficient_scope", param: "user_id" },
  ],
  [
    "a key's name that turns text around",
    { path: "/api/auth/api-keys", body: '{"name": "ci\\u202e"}' },
    invalid("name"),
  ],
  [
    "a pipeline's name that does",
    { path: "/api/pipelines", body: '{"template": "byo-data", "name": "\\u202dx"}' },
    invalid("name"),
  ],
  [
    "a dataset's name that does",
    {
      path: "/api/datasets?name=x%E2%80%AE",
      headers: [["Content-Type", "text/csv"]],
      body: "a\n1\n",
    },
    invalid("name"),
  ],
  [
    "an admin key for a user",
    { path: "/api/auth/api-keys", body: '{"scope": "admin"}' },
    { status: 403, code: "insufficient_scope", param: "scope" },
  ],
  [
    "a date that is none",
    { path: "/api/auth/api-keys", body: '{"expires_at": "2026-02-30T00:00:00Z"}' },
    invalid("expires_at"),
  ],
  [
    "a checksum of 10 digits",
    {
      path: "/api/datasets",
      headers: [
        ["Content-Type", "text/csv"],
        ["X-Checksum-Sha256", "0123456789"],
      ],
      body: "a\n1\n",
    },
    invalid("X-Checksum-Sha256"),
  ],
  [
    "a file that is not what it says",
    {
      path: "/api/datasets",
      headers: [["Content-Type", "application/x-ndjson"]],
      body: "a,b\n1,2\n",
    },
    invalid("body"),
  ],
  [
    "an empty file",
    { path: "/api/datasets", headers: [["Content-Type", "text/csv"]] },
    invalid("body"),
  ],
  [
    "a worker of no name",
    { path: "/worker/next_job", body: '{"worker_id": ""}' },
    invalid("worker_id"),
  ],
  [
    "a worker with a path for a name",
    {
      path: "/worker/register",
      body: '{"worker_id": "../x", "gpu": {"name": "cpu", "memory_gb": 0}}',
    },
    invalid("worker_id"),
  ],
  [
    "less than no memory",
    {
      path: "/worker/register",
      body: '{"worker_id": "w", "gpu": {"name": "cpu", "memory_gb": -1}}',
    },
    invalid("gpu.memory_gb"),
  ],
  [
    "a method that hardly anybody knows",
    { method: "PROPFIND", path: "/api/jobs" },
    { status: 405, code: "method_not_allowed" },
  ],
  [
    "no host",
    { method: "GET", path: "/api/jobs", headers: [["Host", "(none)"]] },
    { status: 400, code: "malformed_request", param: "Host" },
  ],
  [
    "a method that is not for it",
    { method: "DELETE", path: "/api/jobs" },
    { status: 405, code: "method_not_allowed" },
  ],
];
