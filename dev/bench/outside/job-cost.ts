import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@temporalio/client";
import { jobWorkflowId } from "../../../core/workflow-ids";
import { all, type Queryable } from "../../../platform/postgres/pool";
import { ApiClient } from "../../api-client";
import { waitFor } from "../../stack/wait";
import type { CountingPostgresProxy } from "./postgres-proxy";
import { median } from "./rows";
import type { CountingTemporalProxy } from "./temporal-proxy";

const WORKER = "bench-counted";
/**
 * How long to watch the idle server, to learn the statements of its background loops. A loop
 * with a longer interval may be missed. This hardly matters: the result is the cost of the cheapest
 * job, and such a loop rarely runs during that job.
 */
const IDLE_MS = 2_500;

export interface CountedForge {
  url: string;
  userKey: string;
  workerKey: string;
  /**
   * The forge-server reaches Postgres and Temporal through these proxies, which count its calls.
   */
  postgres: CountingPostgresProxy;
  temporal: CountingTemporalProxy;
  /** For queries of the benchmark, which bypass the proxies. */
  pool: Queryable;
  client: Client;
}

export interface JobCost {
  transactions: number;
  statements: number;
  temporalCalls: number;
  historyEvents: number;
  /**
   * Number of transactions by label. The label of a transaction consists of the first 80 characters
   * of each of its statements.
   */
  byTransaction: Record<string, number>;
  byCall: Record<string, number>;
}

/**
 * Counts the cost of one short job. Runs several jobs one after the other. For each job, counting
 * starts when the worker polls, which is before the submission, and ends when all work for the job
 * is done. The worker sends no heartbeats.
 */
export async function countJobCost(forge: CountedForge, jobs: number): Promise<JobCost> {
  const worker = new ApiClient(forge.url, forge.workerKey);
  await worker.post("/worker/register", { worker_id: WORKER, gpu: { name: "cpu", memory_gb: 0 } });
  const takeBoth = () => ({ transactions: forge.postgres.take(), calls: forge.temporal.take() });
  const runOne = async (): Promise<string> => await runJob(forge, worker);
  // The first jobs prepare statements and fill caches.
  for (let n = 0; n < 3; n++) await runOne();
  takeBoth();
  await sleep(IDLE_MS);
  const idle = takeBoth();
  const ids: string[] = [];
  const taken: ReturnType<typeof takeBoth>[] = [];
  while (ids.length < jobs) {
    ids.push(await runOne());
    taken.push(takeBoth());
  }
  const transactions = taken.map((one) => one.transactions.map(labelOf));
  const byTransaction = perJob(transactions, new Set(idle.transactions.map(labelOf)));
  const byCall = perJob(
    taken.map((one) => one.calls),
    new Set(idle.calls),
  );
  const statementsOf = (label: string): number => label.split(SEPARATOR).length;
  const histories = await Promise.all(ids.map((id) => historyLength(forge.client, id)));
  return {
    transactions: sum(Object.values(byTransaction)),
    statements: sum(Object.entries(byTransaction).map(([label, n]) => n * statementsOf(label))),
    temporalCalls: sum(Object.values(byCall)),
    historyEvents: median(histories),
    byTransaction,
    byCall,
  };
}

/** Runs a job from its submission to its end. The worker polls before the submission. */
async function runJob(
  { pool, client, url, userKey }: CountedForge,
  worker: ApiClient,
): Promise<string> {
  const polled = worker.post<{ job_id: string; attempt: number }>("/worker/next_job", {
    worker_id: WORKER,
    wait_seconds: 50,
  });
  await waitFor("the worker to wait", async () => {
    const text = "select from workers where worker_id = $1 and available_until > now()";
    return (await all(pool, text, [WORKER])).length === 1;
  });
  // The worker is now recorded as available. Before the poll waits, it reads from the database once
  // more. Submit only after that: in a real fleet, a poll has usually waited for a while when a job
  // comes.
  await sleep(AFTER_MS);
  await new ApiClient(url, userKey).submit("audit", { dataset_uri: "s3://bucket/data.parquet" });
  const { job_id, attempt } = await polled;
  await worker.post("/worker/job_result", {
    worker_id: WORKER,
    job_id,
    attempt,
    status: "completed",
    result: {},
    metrics: { rows_processed: 1_000 },
  });
  await waitFor("the job to have ended, and its outbox to be empty", async () => {
    const text =
      "select from jobs j where job_id = $1 and status = 'completed' and not exists (select from outbox o where o.job_id = j.job_id)";
    return (await all(pool, text, [job_id])).length === 1;
  });
  // The workflow's last call to Temporal follows its last write. Otherwise, on a slow machine, the
  // call could count as one of the next job.
  await waitFor("the job's workflow to have closed", async () => {
    const { status } = await client.workflow.getHandle(jobWorkflowId(job_id)).describe();
    return status.name !== "RUNNING";
  });
  await sleep(AFTER_MS);
  return job_id;
}

const AFTER_MS = 150;
const SEPARATOR = " | ";
const LABEL_LENGTH = 80;

const labelOf = (statements: string[]): string =>
  statements.map((text) => text.replace(/\s+/g, " ").trim().slice(0, LABEL_LENGTH)).join(SEPARATOR);

/**
 * Returns, by label, how many transactions or calls one job needs.
 *
 * Labels outside of `idle` are counted in the cheapest job, which has the fewest transactions or
 * calls with such labels. Another job may need more: for example, a cached key expires during the
 * job and is looked up again.
 *
 * A background loop that runs during a job adds to the counts of labels in `idle`. For a label in
 * `idle`, the result is therefore its lowest count in any job.
 *
 * @param jobs for each job, the labels of its transactions or calls.
 * @param idle the labels that were seen while no job ran.
 */
function perJob(jobs: string[][], idle: Set<string>): Record<string, number> {
  const countIn = (job: string[], label: string): number =>
    job.filter((one) => one === label).length;
  const ownOf = (job: string[]): number => job.filter((label) => !idle.has(label)).length;
  const [cheapest = []] = [...jobs].sort((a, b) => ownOf(a) - ownOf(b));
  const labels = [...new Set(cheapest)].sort();
  const counted = labels.map((label): [string, number] => [
    label,
    idle.has(label)
      ? Math.min(...jobs.map((job) => countIn(job, label)))
      : countIn(cheapest, label),
  ]);
  return Object.fromEntries(counted.filter(([, count]) => count > 0));
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

async function historyLength(client: Client, jobId: string): Promise<number> {
  const { events } = await client.workflow.getHandle(jobWorkflowId(jobId)).fetchHistory();
  return events?.length ?? 0;
}
