/**
 * Workers that restart, and so register again, while jobs are dispatched to them. Such a
 * registration ends the worker's attempt. The registration's transaction may begin before the
 * dispatch, but end the attempt only after the dispatch. In this transaction, `now()` is a time
 * before the attempt's start. The attempt's stored end must not be before its start.
 */

import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilStatus } from "../support/jobs";
import { countWaiting } from "../support/locks";
import { type DispatchedJob, TestWorker } from "../support/test-worker";

const WORKERS = 8;
const ROUNDS = process.env.TEST_SLOW ? 15 : 2;
/**
 * The maximum number of rounds. The test repeats rounds until a dispatch overtakes a registration.
 * In some rounds this does not happen, because the registrations end before the test freezes their
 * server.
 */
const MAX_ROUNDS = 15;
const GPU = { name: "NVIDIA A100 80GB", memory_gb: 80 };

/**
 * One worker. It registers at a process that is frozen for a moment, and polls at another process.
 */
interface Racer {
  registers: TestWorker;
  polls: TestWorker;
}

let forge: Forge;
let racers: Racer[];

beforeAll(async () => {
  // Enough connections that no call waits for one.
  forge = await startForge({ FORGE_DATABASE_POOL: "50" }, { own: ["server"] });
  const { stack } = forge;
  const [here, there] = [stack.apiUrl, await stack.startAnotherServer()].map(
    (url) => new ApiClient(url, stack.keys.workerKey),
  ) as [ApiClient, ApiClient];
  racers = Array.from({ length: WORKERS }, (_, n) => {
    const id = `racing-${n}`;
    return { registers: new TestWorker(here, id), polls: new TestWorker(there, id) };
  });
  for (const racer of racers) await boot(racer, "first");
});

afterAll(async () => {
  await forge?.stop();
});

const boot = ({ registers: worker }: Racer, bootId: string) =>
  worker.register(GPU, { tags: [worker.id], boot_id: bootId });

async function submit({ polls: { id } }: Racer): Promise<string> {
  const body = { ...AUDIT, resources: { gpu: 1, tags: [id] } };
  return (await forge.user.submit("audit", body)).job_id;
}

/** Transactions that are open but not in a statement: here, registrations that have begun. */
const BEGUN = `select from pg_stat_activity where datname = current_database()
  and application_name = 'forge' and state = 'idle in transaction'`;

/**
 * Submits a job for each worker. The registrations begin first, and then the polls that fetch the
 * jobs. @returns the ids of the jobs.
 */
async function race(n: number): Promise<string[]> {
  for (const { polls: worker } of racers) expect(await worker.next()).toBeUndefined();
  const ids = await Promise.all(racers.map(submit));
  for (const id of ids) await untilStatus(forge.user, id, ["assigned"]);
  const server = forge.own("server");
  const isBegun = async (): Promise<boolean> => (await all(forge.ctx.pool, BEGUN)).length > 0;
  const boots: Promise<unknown>[] = [];
  let isOver = true;
  await waitFor(
    "a registration to begin",
    async () => {
      // All registrations may be over before the test sees one of them. Then start more.
      if (isOver) {
        isOver = false;
        const more = racers.map((racer) => boot(racer, `${n}-${boots.length}`));
        boots.push(...more);
        void Promise.allSettled(more).then(() => {
          isOver = true;
        });
      }
      return await isBegun();
    },
    { everyMs: 1 },
  );
  server.signal("SIGSTOP");
  let answered = 0;
  const polls = racers.map(({ polls: worker }) => worker.next().finally(() => answered++));
  try {
    const isThrough = async (): Promise<boolean> =>
      answered + (await countWaiting(forge)) >= WORKERS;
    await waitFor("the polls to be answered, or to wait", isThrough);
  } finally {
    server.signal("SIGCONT");
  }
  await Promise.all([
    ...boots,
    ...racers.map(async (racer, at) => {
      const job = await polls[at];
      const id = ids[at] ?? "";
      await Promise.all([boot(racer, `${n}-b`), end(racer.polls, id, n + at, job)]);
      await finish(racer.polls, id);
    }),
  ]);
  return ids;
}

/** The ways in which a job ends while its worker registers once more. */
const ENDS = ["completed", "failed", "cancelled"] as const;

async function end(worker: TestWorker, id: string, n: number, job?: DispatchedJob): Promise<void> {
  const how = ENDS[n % ENDS.length];
  if (how === "cancelled") await forge.user.call("POST", `/api/jobs/${id}/cancel`);
  else if (job && how === "completed") await worker.complete(job);
  else if (job) await worker.fail(job);
}

/** Runs further attempts until the job has ended. */
const finish = (worker: TestWorker, id: string): Promise<unknown> =>
  waitFor(`${id} to end`, async () => {
    const job = await worker.next();
    if (job) await worker.complete(job);
    return ["completed", "failed"].includes((await forge.user.job(id)).status);
  });

interface Hours {
  job_id: string;
  shortest: number;
  measured: number;
  billed: number;
  unbilled: number;
}

const OVERTAKEN =
  "select from attempts where outcome = 'worker_lost' and ended_at = started_at limit 1";

test("a worker registers again while its job is dispatched: the job ends, and no hours are negative or lost", async () => {
  const ids: string[] = [];
  // Whether a registration began before a dispatch, but ended the attempt only after the dispatch.
  const isOvertaken = async (): Promise<boolean> =>
    (await all(forge.ctx.pool, OVERTAKEN)).length > 0;
  for (let n = 0; n < ROUNDS || (n < MAX_ROUNDS && !(await isOvertaken())); n++) {
    ids.push(...(await race(n)));
  }
  // `proveInvariants` also waits until the bill lines of all ended jobs are written.
  await forge.proveInvariants();
  const rows = await all<Hours & Record<string, unknown>>(
    forge.ctx.pool,
    `select * from (
       select job_id, min(gpu_hours_measured) as shortest, sum(gpu_hours_measured) as measured
       from attempts where job_id = any($1) and gpu_hours_measured is not null group by job_id) ran
     left join (
       select job_id, sum(gpu_hours) as billed, sum(unbilled_gpu_hours) as unbilled
       from billing_lines group by job_id) lines using (job_id)`,
    [ids],
  );
  for (const { job_id, shortest, measured, billed, unbilled } of rows) {
    expect([job_id, Math.min(shortest, billed, unbilled) >= 0]).toEqual([job_id, true]);
    expect([job_id, billed + unbilled]).toEqual([job_id, expect.closeTo(measured, 8)]);
  }
  expect(await isOvertaken()).toBe(true);
}, 300_000);
