import { pipelineWorkflowId } from "../../core/workflow-ids";
import { SimulatedFleet } from "../../dev/simulator/fleet";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { startPipeline, untilPipeline } from "../support/pipelines";

const PIPELINES = 1_000;
const WORKERS = 20;

/**
 * Temporal warns if a history has this many events or bytes. It terminates an execution at five
 * times these limits.
 */
const MAX_EVENTS = 10_240;
const MAX_BYTES = 10 * 1024 * 1024;

let forge: Forge;
let fleet: SimulatedFleet;

beforeAll(async () => {
  forge = await startForge({ FORGE_RATE_LIMIT_PER_MINUTE: "1000000" });
  fleet = new SimulatedFleet(
    { normal: WORKERS },
    {
      apiUrl: forge.stack.apiUrl,
      workerKey: forge.stack.keys.workerKey,
      heartbeatMs: 5_000,
      waitS: 20,
      workMs: 20,
      silenceMs: 60_000,
    },
  );
  await fleet.start();
});

afterAll(async () => {
  try {
    await fleet?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

const uri = "s3://team/x.parquet";

test("two hundred steps, a hundred of them at once, fit one history", async () => {
  const name = (n: number): string => `s${n}`;
  const step = (n: number, needs: string[]) => ({
    name: name(n),
    job_type: "audit",
    payload: { dataset_uri: uri },
    needs,
  });
  const wide = Array.from({ length: 100 }, (_, n) => step(n, []));
  const first = step(
    100,
    wide.map((each) => each.name),
  );
  // 99 more steps, in nine parallel chains. Step n depends on step n - 9. The first nine of these
  // steps depend on `first`.
  const layers = Array.from({ length: 99 }, (_, n) => step(101 + n, [name(Math.max(100, 92 + n))]));
  const id = await startPipeline(forge.user, { steps: [...wide, first, ...layers] });
  const done = await untilPipeline(forge.user, id, ["completed", "failed"], 120_000);
  expect([done.status, done.steps.length]).toEqual(["completed", 200]);
  const handle = forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id));
  const { historyLength, historySize } = await handle.describe();
  process.stderr.write(`200 steps: ${historyLength} events, ${historySize} bytes\n`);
  expect(historyLength).toBeLessThan(MAX_EVENTS / 2);
  expect(historySize).toBeLessThan(MAX_BYTES / 2);
}, 180_000);

test(`${PIPELINES} pipelines of five steps run at once: all end, and each step runs once`, async () => {
  const body = {
    template: "synthetic",
    params: {
      generate: { domain: "law", num_samples: 10 },
      distill: { teacher: "t" },
      train: { model: "m", epochs: 1 },
    },
    skip: ["deploy"],
    name: "one of many",
  };
  const started = performance.now();
  for (let at = 0; at < PIPELINES; at += 25) {
    await Promise.all(
      Array.from({ length: Math.min(25, PIPELINES - at) }, () => startPipeline(forge.user, body)),
    );
  }
  const count = async (): Promise<number> => {
    const rows = await all<{ n: number }>(
      forge.ctx.pool,
      "select count(*) as n from pipelines where name = 'one of many' and status = 'completed'",
    );
    return rows[0]?.n ?? 0;
  };
  await waitFor("all to have completed", async () => (await count()) === PIPELINES, {
    timeoutMs: PIPELINES * 1_500 + 60_000,
    everyMs: 500,
  });
  const seconds = (performance.now() - started) / 1000;
  process.stderr.write(`${PIPELINES} pipelines in ${seconds.toFixed(0)} s\n`);
  const [jobs] = await all<{ n: number; attempts: number }>(
    forge.ctx.pool,
    `select count(*) as n, max(attempts) as attempts from jobs
     where pipeline_id in (select pipeline_id from pipelines where name = 'one of many')`,
  );
  expect(jobs).toEqual({ n: 5 * PIPELINES, attempts: 1 });
}, 1_800_000);
