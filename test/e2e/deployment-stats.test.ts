import { emptyCounts } from "../../core/deployments/latency";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { addRequests, deleteOldRequests } from "../../services/deployments/deployment-requests";
import { type Deployment, deploy, servingWorker } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import type { ModelServer } from "../support/model-server";
import type { ServingWorker } from "../support/serving-worker";
import { createTenant } from "../support/tenants";

let forge: Forge;
let worker: ServingWorker;
let model: ModelServer;
let deployment: Deployment;

beforeAll(async () => {
  forge = await startForge({ FORGE_DEPLOYMENT_SAMPLE_S: "0.2", FORGE_PROXY_TIMEOUT_S: "3" });
  worker = await servingWorker(forge, "box");
  deployment = await deploy(forge.user);
  const [served] = worker.served.values();
  if (!served) throw new Error("no model is served");
  model = served;
});

beforeEach(async () => {
  await execute(forge.ctx.pool, "delete from deployment_requests");
});

afterAll(async () => {
  await worker?.die();
  await forge?.stop();
});

interface Counts {
  requests: number;
  errors: number;
  latency_p50_s: number | null;
  latency_p99_s: number | null;
  input_tokens: number | null;
  output_tokens: number | null;
}

interface Stats {
  total: Counts;
  buckets: (Counts & { at: string })[];
}

const read = (query = ""): Promise<Stats> =>
  forge.user.get<Stats>(`/api/deployments/${deployment.deployment_id}/stats${query}`);

const readWith = (requests: number): Promise<Stats> =>
  waitFor(`${requests} requests to be counted`, async () => {
    const stats = await read();
    return stats.total.requests === requests && stats;
  });

async function ask(answer: ModelServer["answering"], signal?: AbortSignal): Promise<number> {
  model.answering = answer;
  const url = `${forge.stack.apiUrl}${deployment.url}/chat/completions`;
  const headers = { "x-service-api-key": forge.user.key, "content-type": "application/json" };
  const response = await fetch(url, {
    method: "POST",
    headers,
    body: "{}",
    signal: signal ?? null,
  });
  await response.text();
  return response.status;
}

const answers =
  (body: object, status = 200, afterMs = 0): ModelServer["answering"] =>
  (request, response) => {
    request.resume();
    setTimeout(() => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    }, afterMs);
  };

test("no requests yet", async () => {
  const nothing = { latency_p50_s: null, input_tokens: null, output_tokens: null };
  expect(await read()).toMatchObject({
    total: { requests: 0, errors: 0, ...nothing },
    buckets: [],
  });
});

test("requests, errors, latency and tokens are counted", async () => {
  const usage = { prompt_tokens: 7, completion_tokens: 20 };
  expect(await ask(answers({ usage }, 200, 300))).toBe(200);
  expect(await ask(answers({ usage }, 200, 300))).toBe(200);
  // A refusal by the model is the caller's fault, so it does not count as an error.
  expect(await ask(answers({}, 422))).toBe(422);
  expect(await ask(answers({}, 500))).toBe(500);
  // The model does not respond in time.
  expect(await ask((request) => void request.resume())).toBe(504);
  const { total, buckets } = await readWith(5);
  expect(total).toMatchObject({ errors: 2, input_tokens: 14, output_tokens: 40 });
  expect(total.latency_p50_s).toBeGreaterThan(0.25);
  expect(total.latency_p99_s).toBeGreaterThan(0.45);
  expect(buckets.reduce((sum, each) => sum + each.requests, 0)).toBe(5);
});

test("a caller that disconnects is no error; a request without an available server is one", async () => {
  const gone = new AbortController();
  const asked = ask((request) => {
    request.resume();
    gone.abort();
  }, gone.signal);
  await expect(asked).rejects.toThrow();
  worker.unhealthy.add(deployment.deployment_id);
  await waitFor("it to be unhealthy", async () => (await ask(answers({}))) === 503);
  worker.unhealthy.clear();
  const { total } = await waitFor("an error", async () => {
    const stats = await read();
    return stats.total.errors > 0 && stats;
  });
  expect(total.errors).toBeLessThanOrEqual(total.requests);
});

test("counts of several processes add up in a minute, and the next day's overwrite them", async () => {
  const { pool } = forge.ctx;
  const { deployment_id } = deployment;
  const latency = emptyCounts();
  latency[3] = 2;
  const counts = { deployment_id, requests: 2, errors: 1, input_tokens: 5, output_tokens: null };
  await addRequests(pool, [{ ...counts, latency }]);
  await addRequests(pool, [{ ...counts, input_tokens: null, output_tokens: 8, latency }]);
  expect((await read()).total).toMatchObject({
    ...{ requests: 4, errors: 2, input_tokens: 5, output_tokens: 8 },
  });
  await execute(pool, "update deployment_requests set at = at - interval '1 day'");
  expect((await read()).total.requests).toBe(0);
  await addRequests(pool, [{ ...counts, latency }]);
  expect((await read()).total.requests).toBe(2);
  const rows = await all(pool, "select from deployment_requests");
  expect(rows.length).toBeLessThanOrEqual(2);
  await execute(pool, "update deployment_requests set at = at - interval '25 hours'");
  expect(await deleteOldRequests(pool, 10)).toBe(rows.length);
});

test("only the tenant sees them", async () => {
  const { user } = await createTenant(forge, "curious");
  const path = `/api/deployments/${deployment.deployment_id}/stats`;
  expect(await user.call("GET", path)).toMatchObject({ status: 404 });
  expect((await forge.admin.call("GET", path)).status).toBe(200);
  const wrong = await forge.user.call("GET", `${path}?bucket_s=10`);
  expect(wrong).toMatchObject({ status: 400, body: { error: { param: "bucket_s" } } });
});
