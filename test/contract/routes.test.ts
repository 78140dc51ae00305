import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ssh2 from "ssh2";
import type { OpenApiDocument } from "../../platform/http/openapi";
import { deploy } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { ModelServer } from "../support/model-server";
import { startPipeline, untilPipeline } from "../support/pipelines";
import { type Ids, OVER_SSH, PIPELINES, ROWS, type Row } from "./rows";

let forge: Forge;
let ids: Ids;
let model: ModelServer;
const keyDir = mkdtempSync(join(tmpdir(), "forge-keys-"));

beforeAll(async () => {
  mkdirSync(join(keyDir, "local"));
  // An ECDSA key despite the file's name, because ssh2 1.17.0 generates a malformed ed25519 key in
  // one of 400 cases.
  const { private: key } = ssh2.utils.generateKeyPairSync("ecdsa", { bits: 256 });
  writeFileSync(join(keyDir, "local", "id_ed25519"), key);
  // Lift the rate limit, because the test sends a request to each path of each route in rows.ts.
  forge = await startForge({
    FORGE_SSH_KEY_DIR: keyDir,
    FORGE_MAX_BOOTSTRAPS_PER_TENANT: "1000",
    FORGE_COMPUTE_REPOSITORY: "https://example.org/compute.git",
    FORGE_RATE_LIMIT_PER_MINUTE: "1000000",
    FORGE_MAX_STREAM_S: "0.2",
    FORGE_CANCEL_GRACE_S: "600",
    FORGE_DEPLOYMENT_STOP_GRACE_S: "600",
  });
  model = await ModelServer.start("deployed");
  const worker = await forge.worker("w1", { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 });
  const finished = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  await worker.report(job, { status: "completed", result: {} });
  await untilEnded(forge.user, finished.job_id);
  const deployed = async (result: object): Promise<string> => {
    const made = deploy(forge.user);
    await worker.report(await worker.take(), { status: "completed", result });
    return (await made).deployment_id;
  };
  const deploymentId = await deployed({ inference_url: model.url });
  const leavingDeploymentId = await deployed({});
  const idle = await forge.worker("out-of-order");
  await idle.heartbeat({ status: "error" });
  const upload = await post("/api/datasets", Buffer.from('{"q": 1}\n'));
  const leaving = await post("/api/datasets", Buffer.from('{"q": 2}\n'));
  const spare = await forge.user.post<{ key_id: string }>("/api/auth/api-keys", {});
  const overSsh = await forge.user.post<{ worker_id: string }>("/workers/register", OVER_SSH);
  const waiting = await forge.user.submit("train", {
    dataset_id: "d",
    model: "m",
    resources: { gpu: 8 },
  });
  const deaf = await forge.worker("deaf");
  const running = await forge.user.submit("audit", { dataset_uri: upload.dataset_uri });
  await deaf.take();
  await forge.worker("leaving");
  const pipeline = await startPipeline(forge.user, PIPELINES.steps);
  const cancelled = await startPipeline(forge.user, PIPELINES.template);
  const waitingPipeline = await startPipeline(forge.user, PIPELINES.template);
  await forge.user.call("POST", `/api/pipelines/${cancelled}/cancel`);
  await untilPipeline(forge.user, cancelled);
  await untilPipeline(forge.user, waitingPipeline, ["waiting_approval"]);
  ids = {
    pipeline_id: pipeline,
    waiting_pipeline_id: waitingPipeline,
    cancelled_pipeline_id: cancelled,
    job_id: waiting.job_id,
    running_job_id: running.job_id,
    finished_job_id: finished.job_id,
    artifact_id: upload.dataset_id,
    leaving_artifact_id: leaving.dataset_id,
    deployment_id: deploymentId,
    leaving_deployment_id: leavingDeploymentId,
    file: "raw.jsonl",
    worker_id: "w1",
    leaving_worker_id: "leaving",
    ssh_worker_id: overSsh.worker_id,
    key_id: spare.key_id,
  };
});

afterAll(async () => {
  await forge?.stop();
  await model?.stop();
  rmSync(keyDir, { recursive: true });
});

async function post(path: string, body: Buffer): Promise<Dataset> {
  const response = await fetch(`${forge.stack.apiUrl}${path}`, {
    method: "POST",
    headers: {
      "x-service-api-key": forge.stack.keys.userKey,
      "content-type": "application/x-ndjson",
    },
    body,
  });
  return (await response.json()) as Dataset;
}

interface Dataset {
  dataset_id: string;
  dataset_uri: string;
}

/** The path with and without /api, each with and without a trailing slash. */
function formsOf(path: string): string[] {
  const [bare = "", query] = path.split("?");
  const other = bare.startsWith("/api/") ? bare.slice("/api".length) : `/api${bare}`;
  return [bare, other].flatMap((form) =>
    [form, `${form}/`].map((each) => (query ? `${each}?${query}` : each)),
  );
}

const keyFor = ({ scope }: Row): string => {
  const { adminKey, userKey, workerKey } = forge.stack.keys;
  if (scope === "admin") return adminKey;
  return scope === "worker" ? workerKey : userKey;
};

async function call(row: Row, path: string, headers: Record<string, string>): Promise<Response> {
  const body = row.body?.(ids);
  const isFile = Buffer.isBuffer(body);
  return await fetch(`${forge.stack.apiUrl}${path}`, {
    method: row.method,
    headers: {
      ...headers,
      ...(body === undefined
        ? {}
        : { "content-type": isFile ? "application/x-ndjson" : "application/json" }),
      ...row.headers,
    },
    ...(body === undefined ? {} : { body: isFile ? body : JSON.stringify(body) }),
  });
}

test.each(ROWS.map((row) => [row.operations.join(), row] as const))(
  "%s, in every form and by both headers",
  async (_name, row) => {
    const key = keyFor(row);
    for (const path of new Set(row.paths(ids).flatMap(formsOf))) {
      for (const headers of [
        { "x-service-api-key": key },
        { authorization: `Bearer ${key}` },
      ] as Record<string, string>[]) {
        const response = await call(row, path, headers);
        const text = await response.text();
        expect([path, response.status, text]).toEqual([path, row.status, expect.any(String)]);
        expect(response.headers.get("x-request-id")).toBeTruthy();
        if (!response.headers.get("content-type")?.startsWith("application/json")) continue;
        expect(JSON.parse(text)).toMatchObject(row.answer ?? {});
      }
    }
  },
);

test("the document contains exactly these rows", async () => {
  const { paths } = await forge.user.get<OpenApiDocument>("/openapi.json");
  const shown = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const built = new Set(ROWS.flatMap((row) => row.operations));
  expect(shown.sort()).toEqual([...built].sort());
});
