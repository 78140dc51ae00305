import type { Scope } from "../../core/accounts/permissions";
import { METERED_RATE_CARD } from "../../core/billing/rate-card";
import { AUDIT } from "../support/jobs";

/** Existing ids, for the paths. */
export type Ids = Record<
  | "job_id"
  | "running_job_id"
  | "finished_job_id"
  | "artifact_id"
  | "leaving_artifact_id"
  | "deployment_id"
  | "leaving_deployment_id"
  | "file"
  | "worker_id"
  | "leaving_worker_id"
  | "ssh_worker_id"
  | "key_id"
  | "pipeline_id"
  | "waiting_pipeline_id"
  | "cancelled_pipeline_id",
  string
>;

/**
 * A row of the contract's list of routes. If the contract's row has several methods, there is one
 * `Row` for each method.
 */
export interface Row {
  /** The operations in the contract, which the OpenAPI document must contain. */
  operations: string[];
  method: string;
  /**
   * Every form of the path in section 4 of spec.md and in the contract. The test requests each form
   * with and without /api.
   */
  paths: (ids: Ids) => string[];
  scope: Scope | "open";
  status: number;
  body?: (ids: Ids) => unknown;
  headers?: Record<string, string>;
  /** Fields that the response must have. */
  answer?: object;
}

const JOB_BODIES: Record<string, object> = {
  generate: { task: "qa", size: 10, teacher: "t" },
  audit: AUDIT,
  distill: { dataset_id: "d", teacher: "t" },
  train: { dataset_id: "d", model: "m", epochs: 1 },
  evaluate: { checkpoint_id: "c" },
  deploy: { checkpoint_id: "c" },
};

/** Bodies with the field names of the SDK (spec.md 2.2), for the same routes as JOB_BODIES. */
const SDK_BODIES: Record<string, object> = {
  generate: { domain: "law", num_samples: 10 },
  audit: AUDIT,
  distill: { teacher_model: "t", student_model: "s", dataset_uri: AUDIT.dataset_uri },
  train: { model_id: "m", dataset_uri: AUDIT.dataset_uri, epochs: 1 },
  evaluate: { model_id: "c", benchmark: "b" },
  deploy: { model_id: "c", region: "r" },
};

const submissions = [JOB_BODIES, SDK_BODIES].flatMap((bodies) =>
  Object.entries(bodies).map(
    ([type, body]): Row => ({
      operations: [`POST /api/jobs/${type}`],
      method: "POST",
      paths: () => [`/api/jobs/${type}`, `/${type}`],
      scope: "user",
      status: 201,
      body: () => body,
      answer: { job_id: expect.any(String), job_type: type, status: expect.any(String) },
    }),
  ),
);

/** The two forms of a pipeline in contract.md: a template with parameters, or a list of steps. */
export const PIPELINES: Record<string, object> = {
  template: {
    template: "byo-data",
    params: { audit: AUDIT, distill: { teacher: "t" }, train: { model: "m" } },
    skip: [],
    gates: [{ step: "evaluate", condition: "scores.overall >= 0.7" }],
    approvals: ["audit"],
    budget_usd: 5,
    reuse: true,
    name: "nightly",
    tags: ["a"],
  },
  steps: {
    steps: [
      { name: "train", job_type: "train", payload: { dataset_id: "d", model: "m" } },
      {
        name: "evaluate",
        job_type: "evaluate",
        payload: { checkpoint_id: "${steps.train.result.checkpoint_id}" },
        needs: ["train"],
      },
    ],
    approvals: ["train"],
  },
};

const aPipeline = {
  pipeline_id: expect.any(String),
  status: expect.any(String),
  steps: expect.arrayContaining([
    expect.objectContaining({
      name: "train",
      job_type: "train",
      job_id: null,
      status: expect.any(String),
      started_at: null,
      cost_usd: null,
    }),
  ]),
};

const pipelineAction = (
  action: string,
  status: number,
  paths: (ids: Ids) => string,
  more: Partial<Row> = {},
): Row => ({
  operations: [`POST /api/pipelines/{pipeline_id}/${action}`],
  method: "POST",
  paths: (ids) => [`/api/pipelines/${paths(ids)}/${action}`],
  scope: "user",
  status,
  answer: { pipeline_id: expect.any(String) },
  ...more,
});

const { name: _, version: __, ...PRICES } = METERED_RATE_CARD;

/** A registration in the SSH form of spec.md 2.4. No machine answers at its address. */
export const OVER_SSH = {
  ssh_host: "192.0.2.1",
  ssh_user: "ubuntu",
  ssh_key_path: "id_ed25519",
  gpu_count: 8,
  gpu_type: "A100 80GB",
  provider: "lambda",
  metadata: { instance_id: "i-1", region: "eu" },
};

const workerForms = (route: string): string[] => [
  `/worker/${route}`,
  `/workers/${route}`,
  `/api/workers/${route}`,
];

const get = (
  path: string,
  paths: Row["paths"],
  answer: object,
  scope: Row["scope"] = "user",
): Row => ({ operations: [`GET ${path}`], method: "GET", paths, scope, status: 200, answer });

const list = (name: string): object => ({
  [name]: expect.any(Array),
  has_more: expect.any(Boolean),
});

/** All rows of the contract that Forge implements. */
export const ROWS: Row[] = [
  ...submissions,
  get("/api/jobs/{job_id}", ({ job_id }) => [`/api/jobs/${job_id}`, `/status/${job_id}`], {
    job_id: expect.any(String),
    status: expect.any(String),
    logs_uri: null,
  }),
  get("/api/jobs", () => ["/api/jobs", "/api/jobs?status=pending&limit=5"], list("jobs")),
  get("/api/jobs/counts", () => ["/api/jobs/counts"], {
    by_status: expect.objectContaining({ pending: expect.any(Number) }),
    by_pending_code: expect.objectContaining({ no_worker_fits: expect.any(Number) }),
  }),
  get(
    "/api/jobs/throughput",
    () => ["/api/jobs/throughput", "/api/jobs/throughput?bucket_s=3600&job_type=train"],
    { buckets: expect.any(Array), bucket_s: expect.any(Number) },
  ),
  {
    operations: ["POST /api/jobs/{job_id}/retry"],
    method: "POST",
    paths: ({ finished_job_id: id }) => [`/api/jobs/${id}/retry`],
    scope: "user",
    status: 201,
    answer: { retried_from: expect.any(String) },
  },
  {
    operations: ["POST /api/jobs/{job_id}/cancel"],
    method: "POST",
    // The job's worker ignores the cancel, so the request can be repeated within the grace period.
    paths: ({ running_job_id: id }) => [`/api/jobs/${id}/cancel`],
    scope: "user",
    status: 202,
    answer: { status: "running", cancel_requested_at: expect.any(String) },
  },
  get("/api/jobs/{job_id}/logs", ({ job_id }) => [`/api/jobs/${job_id}/logs`], {}),
  get("/api/jobs/{job_id}/metrics", ({ job_id }) => [`/api/jobs/${job_id}/metrics`], {
    at: [],
    series: {},
  }),
  get("/api/jobs/{job_id}/events", ({ finished_job_id: id }) => [`/api/jobs/${id}/events`], {}),
  get("/api/events", () => ["/api/events"], {}),
  get("/api/jobs/{job_id}/artifacts", ({ finished_job_id: id }) => [`/api/jobs/${id}/artifacts`], {
    artifacts: [expect.objectContaining({ artifact_id: expect.any(String) })],
  }),
  get("/api/jobs/{job_id}/attempts", ({ finished_job_id: id }) => [`/api/jobs/${id}/attempts`], {
    attempts: [expect.objectContaining({ attempt: 1, outcome: "completed" })],
  }),
  {
    operations: ["POST /api/workers/register"],
    method: "POST",
    paths: () => workerForms("register"),
    scope: "worker",
    status: 201,
    body: ({ worker_id }) => ({
      worker_id,
      gpu: { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 },
      tags: [],
      version: "1.0",
    }),
    answer: { heartbeat_interval_s: expect.any(Number), heartbeat_timeout_s: expect.any(Number) },
  },
  {
    operations: ["POST /api/workers/register"],
    method: "POST",
    paths: () => workerForms("register"),
    scope: "user",
    status: 201,
    body: () => OVER_SSH,
    answer: {
      worker_id: expect.any(String),
      status: "bootstrapping",
      message: expect.any(String),
    },
  },
  {
    operations: ["POST /api/workers/{worker_id}/bootstrap"],
    method: "POST",
    paths: ({ ssh_worker_id: id }) => [`/api/workers/${id}/bootstrap`],
    scope: "user",
    status: 202,
    answer: {
      status: "bootstrapping",
      bootstrap: { run: expect.any(Number), steps: expect.any(Array) },
    },
  },
  {
    operations: ["POST /api/workers/heartbeat"],
    method: "POST",
    paths: () => workerForms("heartbeat"),
    scope: "worker",
    status: 200,
    body: ({ worker_id }) => ({
      worker_id,
      gpu: { util: 1, mem_used: 1, mem_total: 80 },
      status: "idle",
      timestamp: "2026-11-21T00:00:00Z",
    }),
    answer: { status: "idle", commands: [] },
  },
  {
    operations: ["POST /api/workers/next_job"],
    method: "POST",
    paths: () => workerForms("next_job"),
    scope: "worker",
    status: 200,
    // The test has set this worker to `error`, so it gets no job at any of these paths.
    body: () => ({ worker_id: "out-of-order" }),
    answer: { job_id: null },
  },
  {
    operations: ["POST /api/workers/job_result"],
    method: "POST",
    paths: () => workerForms("job_result"),
    scope: "worker",
    status: 200,
    // Repeats the result that finished the job. A repeated result changes nothing.
    body: ({ finished_job_id, worker_id }) => ({
      worker_id,
      job_id: finished_job_id,
      status: "completed",
      result: {},
    }),
    answer: { accepted: true },
  },
  {
    operations: ["PATCH /worker/jobs/{job_id}/log"],
    method: "PATCH",
    paths: ({ running_job_id: id }) => [`/worker/jobs/${id}/log?worker_id=deaf&attempt=1`],
    scope: "worker",
    status: 202,
    body: () => Buffer.from("one\n"),
    headers: { "content-type": "text/plain", "content-range": "bytes 0-3/*" },
    answer: { length: 4, cancelled: expect.any(Boolean) },
  },
  ...["artifacts/{path}", "checkpoints/{name}"].map(
    (place): Row => ({
      operations: [`PUT /worker/jobs/{job_id}/${place}`],
      method: "PUT",
      paths: ({ running_job_id: id }) => [
        `/worker/jobs/${id}/${place.replace(/\{.*/, "a.bin")}?worker_id=deaf&attempt=1`,
      ],
      scope: "worker",
      status: 201,
      body: () => Buffer.from("bytes"),
      headers: { "content-type": "application/octet-stream" },
      answer: { path: "a.bin", received: 5, complete: true },
    }),
  ),
  get(
    "/worker/jobs/{job_id}/inputs/{param}/{path}",
    ({ running_job_id: id }) => [
      `/worker/jobs/${id}/inputs/dataset_uri/raw.jsonl?worker_id=deaf&attempt=1`,
    ],
    {},
    "worker",
  ),
  get("/api/workers", () => ["/api/workers", "/workers"], list("workers")),
  get("/api/workers/{worker_id}", ({ worker_id: id }) => [`/api/workers/${id}`], {
    gpu_count: 1,
    gpu_type: expect.any(String),
    last_heartbeat: expect.any(Number),
    current_job_id: null,
  }),
  {
    operations: ["POST /api/workers/{worker_id}/drain"],
    method: "POST",
    paths: ({ leaving_worker_id: id }) => [`/api/workers/${id}/drain`],
    scope: "user",
    status: 202,
    answer: { draining: true },
  },
  {
    operations: ["POST /api/workers/{worker_id}/undrain"],
    method: "POST",
    paths: ({ leaving_worker_id: id }) => [`/api/workers/${id}/undrain`],
    scope: "user",
    status: 200,
    answer: { draining: false },
  },
  get("/api/workers/{worker_id}/samples", ({ worker_id: id }) => [`/api/workers/${id}/samples`], {
    samples: expect.any(Array),
    bucket_s: expect.any(Number),
  }),
  get("/api/fleet", () => ["/api/fleet"], {
    workers: expect.any(Number),
    by_status: expect.objectContaining({ idle: expect.any(Number) }),
    by_gpu_type: expect.any(Array),
  }),
  {
    operations: ["POST /api/workers/{worker_id}/reset"],
    method: "POST",
    paths: ({ leaving_worker_id: id }) => [`/api/workers/${id}/reset`],
    scope: "admin",
    status: 200,
    answer: { draining: false },
  },
  {
    operations: ["DELETE /api/workers/{worker_id}"],
    method: "DELETE",
    paths: ({ leaving_worker_id: id }) => [`/api/workers/${id}`],
    scope: "user",
    status: 200,
    answer: { worker_id: expect.any(String), decommissioned: true },
  },
  get(
    "/api/auth/ping",
    () => ["/auth/ping", "/api/auth/ping"],
    { ok: true, key_name: expect.any(String), features: expect.any(Object) },
    "worker",
  ),
  {
    operations: ["POST /api/auth/sessions"],
    method: "POST",
    paths: () => ["/api/auth/sessions"],
    scope: "user",
    status: 201,
    answer: {
      key: expect.stringMatching(/^forge_user_/),
      session_of: expect.any(String),
      expires_at: expect.any(String),
    },
  },
  {
    operations: ["POST /api/auth/api-keys"],
    method: "POST",
    paths: () => ["/api/auth/api-keys"],
    scope: "user",
    status: 201,
    body: () => ({}),
    answer: {
      key: expect.stringMatching(/^forge_user_/),
      scope: "user",
      last4: expect.any(String),
    },
  },
  get("/api/auth/api-keys", () => ["/api/auth/api-keys"], list("api_keys")),
  get("/api/limits", () => ["/api/limits"], { limits: expect.any(Array) }),
  {
    operations: ["DELETE /api/auth/api-keys/{key_id}"],
    method: "DELETE",
    paths: ({ key_id }) => [`/api/auth/api-keys/${key_id}`],
    scope: "user",
    status: 200,
    answer: { revoked: true },
  },
  {
    operations: ["POST /api/admin/users"],
    method: "POST",
    paths: () => ["/api/admin/users"],
    scope: "admin",
    status: 201,
    body: () => ({ name: "Team" }),
    answer: { api_key: expect.objectContaining({ scope: "user", key: expect.any(String) }) },
  },
  get("/api/admin/users", () => ["/api/admin/users"], list("users"), "admin"),
  {
    operations: ["PUT /api/admin/users/{user_id}/payment-customer"],
    method: "PUT",
    paths: () => ["/api/admin/users/local/payment-customer"],
    scope: "admin",
    status: 200,
    body: () => ({ payment_customer_id: "cus_contract" }),
    answer: { user_id: "local", payment_customer_id: "cus_contract" },
  },
  get("/api/billing/summary", () => ["/api/billing/summary"], {
    by_job_type: expect.any(Object),
    gpu_hours_total: expect.any(Number),
    tokens_total: expect.any(Number),
    estimated_invoice: expect.objectContaining({ currency: "USD" }),
  }),
  get("/api/billing/daily", () => ["/api/billing/daily", "/api/billing/daily?period=2026-01"], {
    total_cost_usd: expect.any(Number),
    days: expect.arrayContaining([
      expect.objectContaining({ day: expect.any(String), by_job_type: expect.any(Object) }),
    ]),
  }),
  get("/api/billing/records", () => ["/api/billing/records"], list("records")),
  get(
    "/api/billing/records/{job_id}",
    ({ finished_job_id: id }) => [`/api/billing/records/${id}`],
    { state: "final", rate_card: "default", formula: expect.any(String) },
  ),
  get("/api/billing/rates", () => ["/api/billing/rates"], { rate_card: "default" }),
  {
    operations: ["POST /api/billing/estimate"],
    method: "POST",
    paths: () => ["/api/billing/estimate"],
    scope: "user",
    status: 200,
    body: () => ({ job_type: "generate", payload: JOB_BODIES.generate }),
    answer: { expected_usd: expect.any(Number), high_usd: expect.any(Number), currency: "USD" },
  },
  {
    operations: ["GET /api/billing/export"],
    method: "GET",
    paths: () => ["/api/billing/export", "/api/billing/export?period=2026-01"],
    scope: "user",
    status: 200,
  },
  get("/api/billing/budget", () => ["/api/billing/budget"], { user_id: expect.any(String) }),
  {
    operations: ["PUT /api/billing/budget"],
    method: "PUT",
    paths: () => ["/api/billing/budget"],
    scope: "user",
    status: 200,
    body: () => ({ cap_usd: 1_000_000 }),
    answer: { budget: expect.objectContaining({ cap_usd: 1_000_000, warning_usd: 800_000 }) },
  },
  get("/api/audit-log", () => ["/api/audit-log", "/api/audit"], {
    entries: expect.any(Array),
    has_more: expect.any(Boolean),
  }),
  get("/api/admin/rate-cards", () => ["/api/admin/rate-cards"], list("rate_cards"), "admin"),
  {
    operations: ["POST /api/admin/rate-cards"],
    method: "POST",
    paths: () => ["/api/admin/rate-cards"],
    scope: "admin",
    status: 201,
    body: () => ({ name: "contract", prices: { ...PRICES } }),
    answer: { name: "contract", version: expect.any(Number), prices: PRICES },
  },
  {
    operations: ["PUT /api/admin/users/{user_id}/rate-card"],
    method: "PUT",
    paths: () => ["/api/admin/users/local/rate-card"],
    scope: "admin",
    status: 200,
    body: () => ({ rate_card: "default" }),
    answer: { user_id: "local", rate_card: "default", effective_from: expect.any(String) },
  },
  get("/api/artifacts", () => ["/api/artifacts"], list("artifacts")),
  get("/api/artifacts/{artifact_id}", ({ artifact_id: id }) => [`/api/artifacts/${id}`], {
    source_jobs: expect.any(Array),
    manifest: expect.any(Object),
  }),
  get(
    "/api/artifacts/{artifact_id}/manifest",
    ({ artifact_id: id }) => [`/api/artifacts/${id}/manifest`],
    { artifact_type: "dataset" },
  ),
  get(
    "/api/artifacts/{artifact_id}/files",
    ({ artifact_id: id }) => [`/api/artifacts/${id}/files`],
    { files: [expect.objectContaining({ path: expect.any(String) })] },
  ),
  get(
    "/api/artifacts/{artifact_id}/files/{path}",
    ({ artifact_id: id, file }) => [`/api/artifacts/${id}/files/${file}`],
    {},
  ),
  {
    operations: ["POST /api/artifacts/{artifact_id}/tickets"],
    method: "POST",
    paths: ({ artifact_id: id }) => [`/api/artifacts/${id}/tickets`],
    scope: "user",
    status: 201,
    body: ({ file }) => ({ path: file }),
    answer: {
      url: expect.stringMatching(/^\/api\/downloads\?ticket=/),
      expires_at: expect.any(String),
    },
  },
  {
    operations: ["GET /api/downloads"],
    method: "GET",
    paths: () => ["/api/downloads?ticket=expired"],
    scope: "open",
    status: 403,
    answer: { error: expect.objectContaining({ code: "invalid_ticket" }) },
  },
  get(
    "/api/artifacts/{artifact_id}/preview",
    ({ artifact_id: id, file }) => [
      `/api/artifacts/${id}/preview`,
      `/api/artifacts/${id}/preview?path=${file}`,
    ],
    { num_rows: 1, columns: [expect.objectContaining({ name: "q" })], rows: [{ q: 1 }] },
  ),
  get(
    "/api/artifacts/{artifact_id}/lineage",
    ({ artifact_id: id }) => [`/api/artifacts/${id}/lineage`],
    { nodes: [expect.objectContaining({ type: "artifact" })], edges: [], truncated: false },
  ),
  get(
    "/api/artifacts/{artifact_id}/archive",
    ({ artifact_id: id }) => [`/api/artifacts/${id}/archive`],
    {},
  ),
  {
    operations: ["DELETE /api/artifacts/{artifact_id}"],
    method: "DELETE",
    paths: ({ leaving_artifact_id: id }) => [`/api/artifacts/${id}`],
    scope: "user",
    status: 200,
    answer: { deleted_at: expect.any(String) },
  },
  get("/api/storage", () => ["/api/storage", "/api/storage?period=2026-01"], {
    total_bytes: expect.any(Number),
  }),
  get("/api/retention", () => ["/api/retention"], { rules: [] }),
  {
    operations: ["PUT /api/retention"],
    method: "PUT",
    paths: () => ["/api/retention"],
    scope: "user",
    status: 200,
    body: () => ({ rules: [] }),
    answer: { rules: [] },
  },
  {
    operations: ["POST /api/datasets"],
    method: "POST",
    paths: () => ["/api/datasets", "/api/datasets?name=questions"],
    scope: "user",
    status: 201,
    body: () => Buffer.from('{"q": "why?"}\n'),
    answer: { dataset_id: expect.any(String), dataset_uri: expect.any(String), num_rows: 1 },
  },
  ...Object.values(PIPELINES).map(
    (body): Row => ({
      operations: ["POST /api/pipelines"],
      method: "POST",
      paths: () => ["/api/pipelines"],
      scope: "user",
      status: 201,
      body: () => body,
      answer: aPipeline,
    }),
  ),
  get(
    "/api/pipelines",
    () => ["/api/pipelines", "/api/pipelines?status=running"],
    list("pipelines"),
  ),
  ...Object.values(PIPELINES).map(
    (body): Row => ({
      operations: ["POST /api/pipelines/estimate"],
      method: "POST",
      paths: () => ["/api/pipelines/estimate"],
      scope: "user",
      status: 200,
      body: () => body,
      answer: { expected_usd: expect.any(Number), steps: expect.any(Array), currency: "USD" },
    }),
  ),
  get("/api/pipelines/{pipeline_id}", ({ pipeline_id: id }) => [`/api/pipelines/${id}`], aPipeline),
  pipelineAction("approve", 200, ({ waiting_pipeline_id: id }) => id, {
    body: () => ({ step: "audit" }),
  }),
  {
    operations: ["PUT /api/pipelines/{pipeline_id}/budget"],
    method: "PUT",
    paths: ({ pipeline_id: id }) => [`/api/pipelines/${id}/budget`],
    scope: "user",
    status: 200,
    body: () => ({ budget_usd: 100, warning_usd: 50 }),
    answer: { budget_usd: 100, budget_state: "ok" },
  },
  pipelineAction("cancel", 202, ({ cancelled_pipeline_id: id }) => id),
  pipelineAction("resume", 202, ({ cancelled_pipeline_id: id }) => id, {
    headers: { "idempotency-key": "resumed-once" },
  }),
  get(
    "/api/deployments",
    () => ["/api/deployments", "/api/deployments?status=active&limit=5"],
    list("deployments"),
  ),
  get("/api/deployments/{deployment_id}", ({ deployment_id: id }) => [`/api/deployments/${id}`], {
    status: "active",
    url: expect.any(String),
    scaling: { min_replicas: 1, max_replicas: 1 },
    replicas: [expect.objectContaining({ state: "serving" })],
  }),
  get(
    "/api/deployments/{deployment_id}/stats",
    ({ deployment_id: id }) => [`/api/deployments/${id}/stats`],
    {
      total: expect.objectContaining({ requests: expect.any(Number) }),
      buckets: expect.any(Array),
    },
  ),
  {
    operations: ["PATCH /api/deployments/{deployment_id}"],
    method: "PATCH",
    paths: ({ deployment_id: id }) => [`/api/deployments/${id}`],
    scope: "user",
    status: 200,
    body: () => ({ min_replicas: 1, max_replicas: 1 }),
    answer: { status: "active" },
  },
  {
    operations: ["POST /api/deployments/{deployment_id}/stop"],
    method: "POST",
    // The deployment's worker ignores the stop, so the request can be repeated within the grace
    // period.
    paths: ({ leaving_deployment_id: id }) => [`/api/deployments/${id}/stop`],
    scope: "user",
    status: 202,
    answer: { status: "stopping", stop_requested_at: expect.any(String) },
  },
  ...["GET", "POST", "DELETE"].map(
    (method): Row => ({
      operations: [`${method} /api/deployments/{deployment_id}/v1/{path}`],
      method,
      paths: ({ deployment_id: id }) => [`/api/deployments/${id}/v1/models?verbose=1`],
      scope: "user",
      status: 200,
      ...(method === "POST" ? { body: () => ({ messages: [] }) } : {}),
      answer: { model: "deployed", path: expect.stringMatching(/^\/v1\/models\/?\?verbose=1$/) },
    }),
  ),
  get("/healthz", () => ["/healthz"], { ok: true }, "open"),
  get("/readyz", () => ["/readyz"], { ready: true }, "open"),
  get("/openapi.json", () => ["/openapi.json"], { openapi: "3.1.0" }),
  {
    operations: ["GET /metrics"],
    method: "GET",
    paths: () => ["/metrics"],
    scope: "admin",
    status: 200,
  },
];
