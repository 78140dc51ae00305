import type pg from "pg";
import { ApiClient } from "../../dev/api-client";
import type { Stack } from "../../dev/stack/stack";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { AUDIT } from "./jobs";
import type { DispatchedJob } from "./test-worker";

const LANES = 6;
const READS = ["jobs", "workers", "artifacts", "pipelines", "deployments", "billing/summary"];

/** Answers that a client can act on: a success, a refusal, or "try again". */
const isExpected = (status: number): boolean => status < 500 || status === 503;

/**
 * Sends requests without a pause, in several concurrent loops (lanes). Each lane submits jobs and
 * sends read requests. It also has its own worker, which polls, sends heartbeats and reports
 * results.
 */
export class SteadyLoad {
  /** Jobs that a worker has completed. */
  completed = 0;
  /** Counts of unexpected answers, by request. */
  readonly unexpected: Record<string, number> = {};
  private isOver = false;
  private readonly lanes: Promise<unknown>;

  constructor(private readonly stack: Stack) {
    this.lanes = Promise.all(Array.from({ length: LANES }, (_, n) => this.lane(n)));
    // `stop` awaits the lanes and throws their error. Until then, the error must not end the
    // process.
    this.lanes.catch(() => undefined);
  }

  /** Waits until all lanes together have completed three more jobs per lane. */
  async more(): Promise<void> {
    const before = this.completed;
    await waitFor("jobs to complete", () => this.completed >= before + 3 * LANES, {
      timeoutMs: 60_000,
    });
  }

  /** Stops submitting jobs, and waits until the workers have completed all of them. */
  async stop(): Promise<void> {
    this.isOver = true;
    await this.lanes;
  }

  private async lane(n: number): Promise<void> {
    const { apiUrl, keys } = this.stack;
    const user = new ApiClient(apiUrl, keys.userKey);
    const worker = new ApiClient(apiUrl, keys.workerKey);
    const id = `lane-${n}`;
    const gpu = { name: "cpu", memory_gb: 0 };
    await this.send(worker, "POST", "workers/register", { worker_id: id, gpu, version: "1.0" });
    while (!this.isOver) {
      const submit = () => this.send<{ job_id?: string }>(user, "POST", "jobs/audit", AUDIT);
      const [{ job_id: jobId }, { job_id: other }] = [await submit(), await submit()];
      if (other) await this.send(user, "POST", `jobs/${other}/cancel`, {});
      await this.work(worker, id, 5);
      const ofJob = jobId ? [`jobs/${jobId}`, `jobs/${jobId}/attempts`] : [];
      for (const path of [...READS, ...ofJob]) await this.send(user, "GET", path);
    }
    while (await this.work(worker, id, 1));
  }

  /** @returns whether the worker got a job. */
  private async work(worker: ApiClient, id: string, waitS: number): Promise<boolean> {
    const poll = { worker_id: id, wait_seconds: waitS };
    const job = await this.send<Partial<DispatchedJob>>(worker, "POST", "workers/next_job", poll);
    const { job_id: jobId, attempt } = job;
    if (!jobId) return false;
    const load = { util: 0, mem_used: 0, mem_total: 0 };
    const timestamp = new Date().toISOString();
    const held = { worker_id: id, job_id: jobId };
    const heartbeat = { ...held, attempt, gpu: load, status: "busy", timestamp };
    await this.send(worker, "POST", "workers/heartbeat", heartbeat);
    const result = {
      ...held,
      status: "completed",
      result: {},
      metrics: { rows_processed: 10 },
      artifacts_uri: "s3://bucket/somewhere/",
      logs_uri: "s3://bucket/log.txt",
    };
    for (;;) {
      const answer = await this.send<Failed>(worker, "POST", "workers/job_result", result);
      // Repeat the result, as an agent does, until it is accepted or refused.
      if (answer.error?.code !== "unavailable") break;
    }
    this.completed += 1;
    return true;
  }

  private async send<T>(api: ApiClient, method: string, path: string, body?: unknown): Promise<T> {
    const answer = await api.call<T>(method, `/api/${path}`, body);
    if (!isExpected(answer.status)) {
      const name = `${answer.status} ${method} ${path.replace(/job_0\w+/, "ID")}`;
      this.unexpected[name] = (this.unexpected[name] ?? 0) + 1;
    }
    return answer.body;
  }
}

interface Failed {
  error?: { code: string };
}

/**
 * Adds a column to every table, in one transaction per table. A table and its archive table share
 * a transaction, as they must in a migration (see services/jobs/all-jobs.ts).
 *
 * @returns the number of transactions.
 */
export async function addColumns(pool: pg.Pool, column: string): Promise<number> {
  const groups = await all<{ tables: string[] }>(
    pool,
    `select array_agg(table_name::text) as tables from information_schema.tables
     where table_schema = 'public' and table_type = 'BASE TABLE' group by replace(table_name, 'archived_', '')`,
  );
  for (const { tables } of groups) {
    // Several statements sent together are one transaction.
    await pool.query(
      tables.map((name) => `alter table ${name} add column ${column} int`).join("; "),
    );
  }
  return groups.length;
}
