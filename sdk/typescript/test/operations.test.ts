import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Forge } from "../src/client.ts";
import type { JobTypeMethods } from "../src/job-type-methods.ts";
import type { Operations } from "../src/schema.ts";
import { type Answer, type Asked, FakeForge, json } from "./fake-forge.ts";

interface Operation {
  operationId: string;
  parameters: { name: string; in: string }[];
  requestBody?: {
    content: Record<string, { schema: object; examples?: Record<string, { value: object }> }>;
  };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

/** Returns one SDK call for each job type. The call submits the first example of its job type. */
function examplesOfJobTypes(): typeof CALLS {
  const submissions = Object.entries(DOCUMENT.paths).flatMap(([path, { post }]) =>
    post && path === `/api/jobs/${post.operationId}` ? [post] : [],
  );
  return Object.fromEntries(
    submissions.map(({ operationId, requestBody }) => {
      const { examples = {} } = requestBody?.content["application/json"] ?? {};
      const body = Object.values(examples)[0]?.value ?? {};
      return [operationId, (c: Forge) => c[operationId as "train"](body)];
    }),
  );
}

interface Schema {
  properties?: Record<string, { type?: string }>;
}

const DOCUMENT = JSON.parse(
  readFileSync(join(__dirname, "../../../docs/openapi.json"), "utf8"),
) as { paths: Record<string, Record<string, Operation>>; components: object };

const OPERATIONS = Object.entries(DOCUMENT.paths).flatMap(([template, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    template,
    operation,
  })),
);

/**
 * Operations without a method in the SDK. They are called by workers, by Prometheus, or by a
 * browser that opens a download link.
 */
const NOT_FOR_USERS = [
  "downloadByTicket",
  "getMetrics",
  "appendJobLog",
  "downloadJobInput",
  "heartbeat",
  "jobResult",
  "nextJob",
  "uploadArtifactFile",
  "uploadCheckpoint",
];

const MACHINE = { gpu_count: 1, gpu_type: "A100", ssh_port: 22, tags: ["x"], worker_id: "w" };
const HOST_KEY = `SHA256:${"k".repeat(43)}`;
const PRICES = {
  basis: "metered" as const,
  gpuHour: { default: "2.50" },
  inputPer1mTokens: "10.00",
  outputPer1mTokens: "30.00",
  storagePerGbMonth: "0.02",
  deployPerMonth: "0",
};

/**
 * SDK calls, keyed by operation id. A job type without a call in this list uses its call from
 * `examplesOfJobTypes`.
 */
const CALLS: Record<string, (c: Forge, folder: string) => unknown> = {
  ...examplesOfJobTypes(),
  generate: (c) =>
    c.generate({ domain: "law", num_samples: 10, resources: { gpu: 1 }, notes: "n" }),
  audit: (c) => c.audit({ dataset_uri: "s3://b/k", priority: 1, params: { a: 1 } }),
  distill: (c) => c.distill({ dataset_id: "ds", teacher: "t" }),
  train: (c) => c.train({ model: "m", dataset_id: "ds", timeout_s: 9, max_attempts: 1 }),
  evaluate: (c) => c.evaluate({ model_id: "ck", benchmark: "bench" }),
  deploy: (c) => c.deploy({ model_id: "ck", region: "eu", min_replicas: 1, max_replicas: 2 }),
  retryJob: (c) => c.jobs.retry("j"),
  listJobs: (c) =>
    c.jobs.list({
      status: ["pending"],
      job_type: "train",
      tag: "x",
      worker_id: "w",
      pipeline_id: "p",
      created_after: new Date(),
      created_before: "2026-01-01T00:00:00Z",
      completed_after: new Date(),
      completed_before: new Date(),
      created_by: "k",
      error_code: ["timeout"],
      q: "x",
      user_id: "u",
      pageSize: 7,
    }),
  countJobs: (c) => c.jobs.counts({ ended_after: new Date(), user_id: "u" }),
  getJobThroughput: (c) =>
    c.jobs.throughput({
      since: new Date(),
      until: "2026-01-01T00:00:00Z",
      bucket_s: 60,
      job_type: ["train"],
      user_id: "u",
    }),
  getJob: (c) => c.status("j"),
  listJobAttempts: (c) => c.jobs.attempts({ job_id: "j" }),
  listJobArtifacts: (c) => c.getArtifacts("j"),
  cancelJob: (c) => c.jobs.cancel("j"),
  getJobLog: (c) => c.jobs.logs("j", { attempt: 1, tailBytes: 9 }),
  getJobMetrics: (c) => c.jobs.metrics("j", { attempt: 1, max_points: 9 }),
  streamJobEvents: (c) => c.jobs.events("j"),
  streamEvents: (c) => c.events(),
  createPipeline: (c) =>
    c.pipelines.run("synthetic", { train: { model: "m" } }, { name: "n", approvals: ["deploy"] }),
  estimatePipeline: (c) => c.pipelines.estimate({ template: "synthetic", params: {} }),
  listPipelines: (c) => c.pipelines.list({ status: "running", tag: "x", q: "n", user_id: "u" }),
  setPipelineBudget: (c) => c.pipelines.setBudget("p", 9, { warning_usd: 8 }),
  getPipeline: (c) => c.pipelines.get("p"),
  cancelPipeline: (c) => c.pipelines.cancel("p"),
  approvePipelineStep: (c) => c.pipelines.approve("p", "deploy", { note: "good" }),
  resumePipeline: (c) => c.pipelines.resume("p", { from: "train", budget_usd: 9 }),
  listArtifacts: (c) =>
    c.artifacts.list({
      type: "dataset",
      kind: "raw_dataset",
      job_id: "j",
      source: "s",
      name: "n",
      q: "x",
      deleted: true,
    }),
  getArtifact: (c) => c.artifacts.get("a"),
  deleteArtifact: (c) => c.artifacts.delete("a"),
  getManifest: (c) => c.artifacts.manifest("a"),
  listFiles: (c) => c.artifacts.files("a"),
  getFile: (c) => c.artifacts.verify("a"),
  getArchive: (c, folder) => c.artifacts.archive("a", join(folder, "a.tar")),
  previewArtifact: (c) => c.artifacts.preview("a", "raw.csv"),
  createDownloadTicket: (c) => c.artifacts.downloadTicket("a", "raw.csv"),
  getLineage: (c) => c.artifacts.lineage("a"),
  getStorage: (c) => c.artifacts.storage("2026-11"),
  getRetention: (c) => c.artifacts.retention({ user_id: "u" }),
  setRetention: (c) => c.artifacts.setRetention([{ kind: "checkpoint", keep_days: 9 }]),
  uploadDataset: (c) => c.datasets.upload(Buffer.from("a\n1\n"), "n", { format: "csv" }),
  listDeployments: (c) => c.deployments.list({ status: "active" }),
  getDeployment: (c) => c.deployments.get("d"),
  scaleDeployment: (c) => c.deployments.scale("d", { max_replicas: 2 }),
  stopDeployment: (c) => c.deployments.stop("d"),
  askGet: (c) => c.deployments.ask("d", "models"),
  askPost: (c) => c.deployments.ask("d", "chat/completions", { messages: [] }),
  askDelete: (c) => c.deployments.ask("d", "files/f", null, { method: "DELETE" }),
  getBillingSummary: (c) => c.billing.summary("2026-11", { user_id: "u" }),
  getDailyBilling: (c) => c.billing.daily("2026-11", { user_id: "u" }),
  listBillingRecords: (c) =>
    c.billing.records({ period: "2026-11", job_type: "train", sort: "cost", user_id: "u" }),
  getBillingRecord: (c) => c.billing.record("j"),
  getRates: (c) => c.billing.rates({ user_id: "u" }),
  estimateCost: (c) => c.billing.estimate("audit", { dataset_uri: "s3://b/k" }),
  exportBilling: (c) => c.billing.export("2026-11"),
  getBudget: (c) => c.billing.budget(),
  setBudget: (c) => c.billing.setBudget(null, { warning_usd: 5, user_id: "u" }),
  listAudit: (c) => c.billing.audit(),
  listRateCards: (c) => c.rateCards.list(),
  createRateCard: (c) => c.rateCards.create("n", PRICES, { effective_from: new Date() }),
  assignRateCard: (c) => c.users.setRateCard("u", "n", { effective_from: new Date() }),
  ping: (c) => c.service.ping(),
  getLimits: (c) => c.service.limits({ user_id: "u" }),
  createApiKey: (c) => c.apiKeys.create("n", { scope: "worker", expires_at: new Date() }),
  createSession: (c) => c.apiKeys.createSession(),
  listApiKeys: (c) => c.apiKeys.list({ sessions: true }),
  revokeApiKey: (c) => c.apiKeys.revoke("k"),
  createUser: (c) => c.users.create("n", { user_id: "u" }),
  listUsers: (c) => c.users.list(),
  setPaymentCustomer: (c) => c.users.setPaymentCustomer("u", null),
  listWorkers: (c) => c.workers.list({ status: ["idle"], gpu: "a100", q: "x", user_id: "u" }),
  getFleet: (c) => c.workers.summary({ user_id: "u" }),
  getDeploymentStats: (c) =>
    c.deployments.stats("d", { since: new Date(), bucket_s: 60, user_id: "u" }),
  getWorkerSamples: (c) => c.workers.samples("w", { since: new Date(), bucket_s: 60 }),
  undrainWorker: (c) => c.workers.undrain("w"),
  getWorker: (c) => c.workers.get("w"),
  decommissionWorker: (c) => c.workers.remove("w"),
  drainWorker: (c) => c.workers.drain("w"),
  resetWorker: (c) => c.workers.reset("w"),
  bootstrapWorker: (c) => c.workers.bootstrap("w", { ssh_host_key: HOST_KEY }),
  registerWorker: (c) => c.workers.register("h", "u", MACHINE),
  isAlive: (c) => c.service.isAlive(),
  isReady: (c) => c.service.isReady(),
  getOpenApi: (c) => c.service.openapi(),
};

let server: FakeForge;
const folder = mkdtempSync(join(tmpdir(), "forge-sdk-"));

beforeAll(async () => {
  server = await new FakeForge().start();
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("all operations are covered", () => {
  const names = OPERATIONS.map(({ operation }) => operation.operationId).sort();
  expect([...Object.keys(CALLS), ...NOT_FOR_USERS].sort()).toEqual(names);
});

test.each(Object.entries(CALLS))(
  "%s sends a request that matches the document",
  async (name, call) => {
    const first = server.asked.length;
    server.script = (asked) => answerOf(asked);
    const result = call(server.client(), folder);
    if (result instanceof Promise) await result;
    else for await (const _ of result as AsyncIterable<unknown>);
    const asked = server.asked.slice(first);
    const operations = asked.map(operationOf);
    expect(operations.map(({ operationId }) => operationId)).toContain(name);
    for (const [n, operation] of operations.entries())
      requireDocumented(asked[n] as Asked, operation);
  },
);

/**
 * Maps old paths to the documented paths that replaced them. The SDK still requests the old paths,
 * because servers of the previous release do not support the new ones.
 */
const OLDER_PATHS: Record<string, string> = { "/api/audit": "/api/audit-log" };

/** Finds a request's operation. If several match, takes the one with the fewest parameters. */
function operationOf({ method, path }: Asked): Operation {
  const asked = new URL(path, server.url).pathname;
  const pathname = OLDER_PATHS[asked] ?? asked;
  const holes = (template: string): number => template.split("{").length;
  const [found] = OPERATIONS.filter((each) => each.method === method)
    .filter(({ template }) => patternOf(template).test(pathname))
    .sort((a, b) => holes(a.template) - holes(b.template));
  if (!found) throw new Error(`${method} ${path} is no operation`);
  return found.operation;
}

/** The parameter `{path}` may contain slashes. Other parameters may not. */
const patternOf = (template: string): RegExp =>
  new RegExp(`^${template.replace("{path}", ".+").replace(/\{\w+\}/g, "[^/]+")}$`);

/** Returns a minimal successful response for a request. */
function answerOf(asked: Asked): Answer {
  const operation = operationOf(asked);
  if (["streamJobEvents", "streamEvents"].includes(operation.operationId)) {
    return { status: 204, body: "" };
  }
  if (operation.operationId === "getManifest") return json(server.manifest);
  if (operation.operationId === "getFile") return { body: server.files["raw.jsonl"] ?? "" };
  const found = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
  const schema = found?.[1].content?.["application/json"]?.schema;
  if (!schema) return { status: Number(found?.[0]), body: "text" };
  const lists = Object.entries(schema.properties ?? {}).filter(([, { type }]) => type === "array");
  const ofJob = { job_id: "job_1", status: "pending" };
  const entries = Object.fromEntries(lists.map(([field]) => [field, []]));
  return json({ ...ofJob, ...entries }, Number(found?.[0]));
}

const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(
  { $id: "openapi", components: DOCUMENT.components },
  "",
);

function requireDocumented({ path, headers, body }: Asked, operation: Operation): void {
  const names = (place: string): string[] =>
    operation.parameters.filter((each) => each.in === place).map((each) => each.name);
  const { searchParams } = new URL(path, server.url);
  expect(names("query")).toEqual(expect.arrayContaining([...searchParams.keys()]));
  expect("idempotency-key" in headers).toBe(names("header").includes("Idempotency-Key"));
  const type = headers["content-type"] ?? "";
  const content = operation.requestBody?.content[type];
  if (type) expect(Object.keys(operation.requestBody?.content ?? {})).toContain(type);
  if (type !== "application/json" || !content) return;
  const isValid = ajv.compile({ ...content.schema, components: DOCUMENT.components });
  expect([isValid(JSON.parse(String(body))), isValid.errors]).toEqual([true, null]);
}

/** Compile-time check: a submission accepts everything that the API accepts. */
type IsTaken = {
  [Type in keyof JobTypeMethods]: Operations[Type]["body"] extends Parameters<
    JobTypeMethods[Type]
  >[0]
    ? true
    : Type;
}[keyof JobTypeMethods];
export const isTaken: [IsTaken] extends [true] ? true : IsTaken = true;
