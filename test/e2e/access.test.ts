import { ApiClient } from "../../dev/api-client";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { createTenant, type Tenant } from "../support/tenants";

let forge: Forge;
let other: Tenant;

beforeAll(async () => {
  forge = await startForge();
  other = await createTenant(forge, "other");
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) });

describe("keys", () => {
  const codeOf = (answer: { status: number; body: unknown }): string =>
    `${answer.status} ${(answer.body as { error?: { code: string } }).error?.code}`;

  test.each([
    ["no key", {}],
    [
      "a key with a typo",
      { "x-service-api-key": "forge_user_0123456789abcdef0123456789abcdef_00000000" },
    ],
    ["a header without a bearer token", { authorization: "Basic Zm9vOmJhcg==" }],
  ])("%s gets 403 everywhere except for the health checks", async (_name, headers) => {
    const anonymous = (path: string): Promise<Response> =>
      fetch(`${forge.stack.apiUrl}${path}`, { headers: headers as Record<string, string> });
    for (const path of ["/api/jobs/x", "/nowhere", "/api/auth/ping", "/workers"]) {
      const response = await anonymous(path);
      expect([response.status, await response.json()]).toEqual([
        403,
        { error: expect.objectContaining({ code: "invalid_api_key" }) },
      ]);
    }
    for (const path of ["/healthz", "/readyz"]) expect((await anonymous(path)).status).toBe(200);
  });

  test("another scheme's Authorization header is allowed next to a key, a second key is not", async () => {
    const { apiUrl, keys } = forge.stack;
    const ping = async (authorization: string): Promise<number> => {
      const headers = { "x-service-api-key": keys.userKey, authorization };
      return (await fetch(`${apiUrl}/api/auth/ping`, { headers })).status;
    };
    expect(await ping("Basic Zm9vOmJhcg==")).toBe(200);
    expect(await ping(`Bearer ${keys.userKey}`)).toBe(200);
    for (const other of [keys.adminKey, "", "x y"]) expect(await ping(`Bearer ${other}`)).toBe(403);
  });

  test("each scope allows its own operations and no others", async () => {
    const worker = new ApiClient(forge.stack.apiUrl, forge.stack.keys.workerKey);
    expect(codeOf(await worker.call("POST", "/api/jobs/audit", AUDIT))).toBe(
      "403 insufficient_scope",
    );
    expect(codeOf(await worker.call("GET", "/api/workers"))).toBe("403 insufficient_scope");
    for (const [key, scope] of [
      [forge.stack.keys.workerKey, "worker"],
      [forge.stack.keys.userKey, "user"],
      [forge.stack.keys.adminKey, "admin"],
    ]) {
      const answer = await new ApiClient(forge.stack.apiUrl, key ?? "").get("/auth/ping/");
      expect(answer).toMatchObject({ ok: true, scope });
    }
  });

  test("two headers with different keys are refused", async () => {
    const answer = await forge.user.call("GET", "/api/auth/ping", undefined, {
      authorization: `Bearer ${forge.stack.keys.adminKey}`,
    });
    expect(codeOf(answer)).toBe("403 invalid_api_key");
  });

  test("another tenant's job is not found; an admin sees it", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    for (const path of ["", "/attempts", "/artifacts"]) {
      const answer = await other.user.call("GET", `/api/jobs/${job_id}${path}`);
      expect(codeOf(answer)).toBe("404 job_not_found");
    }
    expect(await forge.admin.job(job_id)).toMatchObject({ job_id });
    const worker = await forge.worker("w-last");
    await worker.complete(await worker.take());
    await untilEnded(forge.user, job_id);
    expect((await other.user.call("GET", `/api/billing/records/${job_id}`)).status).toBe(404);
  });
});

describe("a submission", () => {
  test.each([
    ["audit", {}, "dataset_uri"],
    ["audit", { dataset_uri: "http://x/y" }, "dataset_uri"],
    ["audit", { dataset_uri: "s3://b/../c" }, "dataset_uri"],
    ["audit", { dataset_uri: "file:///etc/passwd" }, "dataset_uri"],
    ["audit", { ...AUDIT, dataset_url: 1 }, "dataset_url"],
    ["audit", { ...AUDIT, priority: 101 }, "priority"],
    ["audit", { ...AUDIT, max_attempts: 4 }, "max_attempts"],
    ["audit", { ...AUDIT, resources: { gpus: 1 } }, "resources.gpus"],
    ["generate", { task: "t", size: 1, num_samples: 2, teacher: "x" }, "num_samples"],
    ["generate", { task: "t", size: 1.5, teacher: "x" }, "size"],
    ["train", { model: "m" }, "dataset_id"],
    ["audits", AUDIT, "job_type"],
  ])("of %s %j is refused for its %s", async (type, body, param) => {
    const answer = await forge.user.call("POST", `/api/jobs/${type}`, body);
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request", param } },
    });
  });

  test.each([
    ["NUL", { ...AUDIT, notes: "\0" }, "notes"],
    ["half a surrogate pair", { ...AUDIT, params: { a: ["\ud800"] } }, "params.a.0"],
    ["33 levels", { ...AUDIT, params: nested(32) }, "params"],
  ])("with %s in it is refused for its %s", async (_what, body, param) => {
    const answer = await forge.user.call("POST", "/api/jobs/audit", body);
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request", param } },
    });
  });

  test("to a path that can't be decoded is 403 without a key, else 404", async () => {
    const odd = `${forge.stack.apiUrl}/api/jobs/%zz`;
    expect((await fetch(odd)).status).toBe(403);
    expect(await forge.user.call("GET", "/api/jobs/%zz")).toMatchObject({
      status: 404,
      body: { error: { code: "route_not_found", request_id: expect.any(String) } },
    });
  });

  test("that is not JSON is refused", async () => {
    const send = (body: string, type: string): Promise<Response> =>
      fetch(`${forge.stack.apiUrl}/api/jobs/audit`, {
        method: "POST",
        headers: { "x-service-api-key": forge.stack.keys.userKey, "content-type": type },
        body,
      });
    expect((await send("{", "application/json")).status).toBe(400);
    for (const type of ["application/x-www-form-urlencoded", "text/plain"]) {
      expect((await send("x=1", type)).status).toBe(415);
    }
    expect((await send(`"${"x".repeat(2 ** 21)}"`, "application/json")).status).toBe(413);
  });

  test("repeated with the same Idempotency-Key creates one job", async () => {
    const headers = { "idempotency-key": "once" };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => forge.user.call("POST", "/audit", AUDIT, headers)),
    );
    const ids = new Set(answers.map((answer) => (answer.body as { job_id: string }).job_id));
    expect(ids.size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get("idempotency-replayed"))).toHaveLength(9);
    const other = await forge.user.call("POST", "/audit", { dataset_uri: "s3://b/k" }, headers);
    expect(other).toMatchObject({
      status: 422,
      body: { error: { code: "idempotency_key_reused" } },
    });
    const worker = await forge.worker("w-once");
    await worker.complete(await worker.take());
    for (const id of ids) await untilEnded(forge.user, id);
  });
});
