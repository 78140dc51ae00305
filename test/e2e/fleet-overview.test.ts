import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { deleteOldSamples, writeSamples } from "../../services/fleet/worker-samples";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { createTenant, type Tenant } from "../support/tenants";

let forge: Forge;
let tenant: Tenant;

const A100 = { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 };

beforeAll(async () => {
  forge = await startForge({ FORGE_WORKER_SAMPLE_S: "0.2" });
  tenant = await createTenant(forge, "fleet");
  const register = async (id: string, gpu: object, tags: string[] = []): Promise<void> => {
    const own = tenant.worker(id);
    await own.register(gpu as typeof A100, { tags });
  };
  await register("big-1", { ...A100, count: 8 }, ["eu-west"]);
  await register("big-2", { ...A100, count: 4 });
  await register("small-1", { name: "NVIDIA L4", memory_gb: 24 }, ["eu-north"]);
  await register("plain", { name: "cpu", memory_gb: 0 });
});

afterAll(async () => {
  await forge?.stop();
});

interface Worker {
  worker_id: string;
  draining: boolean;
  status: string;
}

const list = async (query: string, api = tenant.user): Promise<string[]> => {
  const { workers } = await api.get<{ workers: Worker[] }>(`/api/workers?${query}`);
  return workers.map(({ worker_id }) => worker_id).sort();
};

test("workers are filtered by status, GPU and text", async () => {
  expect(await list("gpu=a100")).toEqual(["big-1", "big-2"]);
  expect(await list("q=EU-")).toEqual(["big-1", "small-1"]);
  expect(await list("q=ig-2")).toEqual(["big-2"]);
  expect(await list("gpu=a100&q=eu")).toEqual(["big-1"]);
  const broken = tenant.worker("big-2");
  await broken.heartbeat({ status: "error", reason: "hot" });
  expect(await list("status=error")).toEqual(["big-2"]);
  expect(await list("status=error&status=idle")).toHaveLength(4);
  expect(await list("status=idle", (await createTenant(forge, "others")).user)).toEqual([]);
  const refused = await tenant.user.call("GET", "/api/workers?status=asleep");
  expect(refused).toMatchObject({ status: 400, body: { error: { param: "status" } } });
});

test("the fleet is counted by status and GPU", async () => {
  await tenant.worker("big-1").heartbeat({ gpu: { util: 80, mem_used: 60, mem_total: 640 } });
  await tenant.worker("small-1").heartbeat({ gpu: { util: 20, mem_used: 4, mem_total: 24 } });
  // A worker with status `error` reports 100 % utilization, which must not be counted.
  await tenant.worker("big-2").heartbeat({
    status: "error",
    gpu: { util: 100, mem_used: 1, mem_total: 320 },
  });
  const audit = await tenant.user.submit("audit", { ...AUDIT, resources: { gpu: 8 } });
  await waitFor("big-1 to have the job", async () => {
    return (await tenant.worker("big-1").next(5))?.job_id === audit.job_id;
  });
  expect(await tenant.user.get("/api/fleet")).toEqual({
    workers: 4,
    by_status: { bootstrapping: 0, idle: 2, busy: 1, error: 1, dead: 0 },
    draining: 0,
    gpus: 13,
    busy_gpus: 8,
    idle_gpus: 1,
    by_gpu_type: [
      { gpu_type: A100.name, workers: 2, gpus: 12, busy_gpus: 8, idle_gpus: 0 },
      { gpu_type: "NVIDIA L4", workers: 1, gpus: 1, busy_gpus: 0, idle_gpus: 1 },
      { gpu_type: "cpu", workers: 1, gpus: 0, busy_gpus: 0, idle_gpus: 0 },
    ],
    util: 50,
    mem_used: 64,
    mem_total: 664,
  });
  const { user: stranger } = await createTenant(forge, "no-fleet");
  expect(await stranger.get("/api/fleet")).toMatchObject({ workers: 0, util: null });
  expect(await forge.admin.get("/api/fleet?user_id=fleet")).toMatchObject({ workers: 4 });
});

test("a drained worker gets jobs again when it is undrained", async () => {
  const { user, worker } = await createTenant(forge, "draining");
  const own = worker("leaving");
  await own.register();
  await user.call("POST", "/api/workers/leaving/drain");
  await user.submit("audit", AUDIT);
  expect(await own.next()).toBeUndefined();
  expect(await user.call("POST", "/api/workers/leaving/undrain")).toMatchObject({
    status: 200,
    body: { draining: false, status: expect.any(String) },
  });
  await own.take();
  // A repeated undrain has no effect. Another tenant's worker is not found.
  expect((await user.call("POST", "/api/workers/leaving/undrain")).status).toBe(200);
  expect((await user.call("POST", "/api/workers/big-1/undrain")).status).toBe(404);
  const { entries } = await user.get<{ entries: { action: string }[] }>("/api/audit-log");
  expect(entries.map(({ action }) => action)).toContain("worker_undrained");
});

interface Samples {
  bucket_s: number;
  samples: { at: string; util: number; util_max: number; mem_used: number; mem_total: number }[];
}

test("heartbeats become samples, one a minute at most", async () => {
  const own = tenant.worker("small-1");
  await execute(forge.ctx.pool, "delete from worker_samples");
  const began = Date.now();
  for (const util of [10, 30, 50]) {
    await own.heartbeat({ gpu: { util, mem_used: 12, mem_total: 24 } });
  }
  const { samples } = await waitFor("three heartbeats in a sample", async () => {
    const [row] = await all<{ heartbeats: number }>(
      forge.ctx.pool,
      "select sum(heartbeats)::int as heartbeats from worker_samples where worker_id = 'small-1'",
    );
    if (row?.heartbeats !== 3) return undefined;
    return await tenant.user.get<Samples>("/api/workers/small-1/samples?bucket_s=3600");
  });
  const rows = await all(forge.ctx.pool, "select from worker_samples where worker_id = 'small-1'");
  const minutes = Math.floor(Date.now() / 60_000) - Math.floor(began / 60_000) + 1;
  expect(rows.length).toBeLessThanOrEqual(minutes);
  // There is one row per minute, and the API returns one sample per hour. If an hour ended between
  // the heartbeats, there are two samples: one for a single heartbeat, the other for two. The mean
  // of these samples is not 30. So check the mean only if there is one row.
  const mean = samples.reduce((sum, sample) => sum + sample.util, 0) / samples.length;
  if (rows.length === 1) expect(mean).toBeCloseTo(30, 6);
  expect(samples[0]).toMatchObject({ mem_used: 12, mem_total: 24 });
  expect((await forge.user.call("GET", "/api/workers/small-1/samples")).status).toBe(404);
});

test("absurd numbers of one worker don't block the samples of others", async () => {
  const { worker } = await createTenant(forge, "absurd");
  const own = worker("absurd");
  await own.register();
  const absurd = 1.7e308;
  const written = async (): Promise<number> => {
    const [row] = await all<{ n: number | null }>(
      forge.ctx.pool,
      `select sum(heartbeats)::int as n from worker_samples
       where worker_id = 'absurd' and util = 1e6 and mem_used = 1e6 and mem_total = 1e6`,
    );
    return row?.n ?? 0;
  };
  // The heartbeats of the second round are added to the sample of the first round, unless a minute
  // ends between the rounds.
  for (let n = 1; n <= 2; n++) {
    await own.heartbeat({ gpu: { util: absurd, mem_used: absurd, mem_total: absurd } });
    await own.heartbeat({ gpu: { util: absurd, mem_used: absurd, mem_total: absurd } });
    await waitFor("them to be written", async () => (await written()) === 2 * n);
  }
  expect(await forge.admin.call("GET", "/api/fleet")).toMatchObject({ status: 200 });
});

test("a day of samples is kept, and a silent worker's are deleted", async () => {
  const { worker } = await createTenant(forge, "old");
  await worker("silent").register();
  const sample = { worker_id: "silent", heartbeats: 1, util: 1, mem_used: null, mem_total: null };
  await writeSamples(forge.ctx.pool, [sample, { ...sample, worker_id: "never-registered" }]);
  await writeSamples(forge.ctx.pool, [{ ...sample, heartbeats: 3, util: 5 }]);
  const kept = (): Promise<{ util: number; heartbeats: number } | undefined> =>
    maybeOne(
      forge.ctx.pool,
      "select avg(util) as util, sum(heartbeats)::int as heartbeats from worker_samples where worker_id = 'silent'",
    );
  // All four heartbeats are counted, even if a minute ended between them.
  expect((await kept())?.heartbeats).toBe(4);
  // There is one slot for each minute of a day. A sample from a day ago is in this minute's slot,
  // so the next sample overwrites it.
  await execute(
    forge.ctx.pool,
    "update worker_samples set at = at - interval '1 day' where worker_id = 'silent'",
  );
  const count = async (): Promise<number> =>
    (await all(forge.ctx.pool, "select from worker_samples where worker_id = 'silent'")).length;
  const before = await count();
  await writeSamples(forge.ctx.pool, [{ ...sample, util: 9 }]);
  expect((await count()) - before).toBeLessThanOrEqual(1);
  await execute(
    forge.ctx.pool,
    "update worker_samples set at = at - interval '2 days' where worker_id = 'silent'",
  );
  // The samples of a living worker are only overwritten, never deleted.
  expect(await deleteOldSamples(forge.ctx.pool, 10)).toBe(0);
  await execute(
    forge.ctx.pool,
    "update workers set last_heartbeat_at = now() - interval '2 days' where worker_id = 'silent'",
  );
  await deleteOldSamples(forge.ctx.pool, 10);
  expect(await count()).toBe(0);
});
