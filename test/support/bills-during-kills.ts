import { setTimeout as sleep } from "node:timers/promises";
import { SimulatedFleet } from "../../dev/simulator/fleet";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { createKey } from "../../services/accounts/keys";
import { stopAll } from "./deployments";
import type { Forge } from "./forge";
import { killInTurn, processesOf } from "./kill-in-turn";
import { endOf, gpuOf, randomJob } from "./random-jobs";
import { createTenant, type Tenant } from "./tenants";

const TENANTS = ["ann", "bob", "cy"] as const;
export type Tenants = Record<(typeof TENANTS)[number], Tenant>;

/** With these settings, Forge notices lost workers within seconds, and limits no request rate. */
export const SHORT_TIMEOUTS = {
  FORGE_HEARTBEAT_TIMEOUT_S: "6",
  FORGE_CANCEL_GRACE_S: "2",
  FORGE_ASSIGNMENT_TIMEOUT_S: "3",
  FORGE_RECONCILE_AFTER_S: "2",
  FORGE_DEPLOYMENT_STOP_GRACE_S: "1",
  FORGE_RATE_LIMIT_PER_MINUTE: "10000000",
  FORGE_RATE_LIMIT_BURST: "1000000",
};

/** The number of concurrent submissions. */
const AT_ONCE = 12;
/**
 * The maximum number of unfinished jobs at a time. With thousands, the servers would spend most of
 * their time on deliveries to Temporal.
 */
const MAX_UNFINISHED = 300;

/**
 * Tenants submit random jobs to a fleet of good and bad workers, which report random usage, while
 * every process of Forge is killed in turn. Ann is billed by the default rate card, and Bob by the
 * metered one. Cy has the default card for the first half of the jobs, and then the metered one.
 * Returns when every job has ended and every deployment has stopped.
 */
export async function billDuringKills(
  forge: Forge,
  count: number,
  kills: number,
): Promise<{ tenants: Tenants; killed: string[]; ends: Record<string, number> }> {
  const [ann, bob, cy] = await Promise.all(TENANTS.map((id) => createTenant(forge, id)));
  if (!ann || !bob || !cy) throw new Error("there are three tenants");
  const tenants: Tenants = { ann, bob, cy };
  await assignMeteredRateCard(forge, "bob");
  const fleet = await startFleet(forge);
  let submitted = 0;
  const submitFrom = async (first: number, end: number): Promise<void> => {
    const lanes = Array.from({ length: AT_ONCE }, async (_, lane) => {
      for (let n = first + lane; n < end; n += AT_ONCE) {
        await waitFor("room", async () => (await countJobs(forge)).unfinished < MAX_UNFINISHED, {
          timeoutMs: 300_000,
          everyMs: 250,
        });
        await submit(tenants[TENANTS[n % 3] ?? "ann"], n);
        submitted++;
      }
    });
    await Promise.all(lanes);
  };
  const half = Math.floor(count / 2);
  const submitting = submitFrom(0, half)
    .then(() => assignMeteredRateCard(forge, "cy"))
    .then(() => submitFrom(half, count));
  const areOver = async (): Promise<boolean> =>
    submitted === count && (await countJobs(forge)).unfinished === 0;
  let ended = 0;
  // Waits until the next batch of jobs has ended, so that there is one kill per batch.
  const between = async (): Promise<void> => {
    const next = Math.min(count, ended + Math.floor(count / (kills + 1)));
    const haveEnded = async (): Promise<boolean> => {
      ({ ended } = await countJobs(forge));
      return ended >= next;
    };
    await waitFor("jobs to end between two kills", haveEnded, { timeoutMs: 300_000 });
  };
  const killed = await killInTurn(processesOf(forge), areOver, { atMost: kills, between });
  await submitting;
  await waitFor("the last ones", areOver, { timeoutMs: 300_000 });
  await stopDeployments(forge, tenants);
  await fleet.stop();
  const ends = await all<{ how: string; jobs: number }>(
    forge.ctx.pool,
    "select coalesce(error_code, status) as how, count(*) as jobs from jobs group by 1 order by 1",
  );
  return { tenants, killed, ends: Object.fromEntries(ends.map(({ how, jobs }) => [how, jobs])) };
}

async function assignMeteredRateCard({ admin }: Forge, userId: string): Promise<void> {
  const path = `/api/admin/users/${userId}/rate-card`;
  await waitFor("the rate card to be assigned", async () => {
    return (await admin.call("PUT", path, { rate_card: "metered" })).status === 200;
  });
}

/** Shared workers: any tenant's jobs run on any of them. */
async function startFleet({ stack, ctx }: Forge): Promise<SimulatedFleet> {
  const { key } = await createKey(ctx.pool, {
    userId: "local",
    scope: "worker",
    name: "fleet",
    madeByAdmin: true,
  });
  const fleet = new SimulatedFleet(
    { normal: 18, slow: 2, flapping: 4, zombie: 3, double: 4, liar: 3, deaf: 2 },
    {
      apiUrl: stack.apiUrl,
      workerKey: key,
      heartbeatMs: 500,
      waitS: 5,
      workMs: 60,
      silenceMs: 9_000,
      gpuOf,
      resultBodyOf: endOf,
    },
  );
  await fleet.start();
  return fleet;
}

/** Repeats a submission under its idempotency key until it gets a response. */
async function submit({ user }: Tenant, n: number): Promise<void> {
  const { type, body, isCancelled } = randomJob(n);
  const untilAnswered = async (path: string, content: unknown, statuses: number[]) =>
    await waitFor(
      `${path} to be answered`,
      async () => {
        const headers = { "idempotency-key": `random-${n}` };
        const answer = await user.call<{ job_id: string }>("POST", path, content, headers);
        if (answer.status >= 400 && answer.status < 500 && answer.status !== 409) {
          throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
        }
        return statuses.includes(answer.status) && answer.body;
      },
      { timeoutMs: 60_000, everyMs: 200 },
    );
  const { job_id: id } = await untilAnswered(`/api/jobs/${type}`, body, [201]);
  if (!isCancelled) return;
  await sleep(Math.random() * 200);
  // 409: the job ended before it could be cancelled.
  await untilAnswered(`/api/jobs/${id}/cancel`, undefined, [200, 202, 409]);
}

/**
 * Counts the jobs that the test submitted. Leaves out jobs that Forge itself adds to start servers
 * of an active deployment. Only jobs that Forge adds have a `deployment_id`.
 */
const COUNT = `select count(*) filter (where status in ('completed', 'failed')) as ended,
                      count(*) filter (where status not in ('completed', 'failed')) as unfinished
               from jobs where deployment_id is null`;

async function countJobs({ ctx }: Forge): Promise<{ ended: number; unfinished: number }> {
  const [counts] = await all<{ ended: number; unfinished: number }>(ctx.pool, COUNT);
  if (!counts) throw new Error("a count has one row");
  return counts;
}

async function stopDeployments({ ctx }: Forge, tenants: Tenants): Promise<void> {
  await waitFor(
    "all that is deployed to be over",
    async () => {
      for (const { user } of Object.values(tenants)) await stopAll(user);
      const left = await all(
        ctx.pool,
        `select from deployments where status <> 'stopped'
         union all
         select from jobs where status not in ('completed', 'failed')`,
      );
      return left.length === 0;
    },
    { timeoutMs: 120_000 },
  );
}
