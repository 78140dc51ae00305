import { CoalescedByGroup } from "../../platform/concurrency/coalesce";
import { isDatabaseError, isUnavailable } from "../../platform/postgres/errors";
import type { Queryable } from "../../platform/postgres/pool";
import type { Context } from "../context";
import { announceAssigned } from "../fleet/announce-assigned";
import type { Started } from "../fleet/long-polls";
import { startNewJob } from "../fleet/start-new-job";
import {
  insertUnbudgetedJob,
  insertUnbudgetedJobs,
  type JobRow,
  type SerializedJob,
  serializeJob,
  type UnpricedJob,
} from "./jobs";

const MAX_AT_ONCE = 16;
/**
 * The maximum total size in bytes of the jobs in one statement, so that statement and responses are
 * fast. A larger job is inserted alone.
 */
const MAX_BYTES = 256 * 1024;

interface Inserted {
  /** The job as it was submitted, `pending`. Undefined if its tenant has a budget. */
  row: JobRow | undefined;
  /** Whether a waiting worker already runs the job. */
  hasStarted: boolean;
}

type Uses = Pick<Context, "pool" | "connectionQueues" | "longPolls" | "metrics" | "signals">;

/**
 * Inserts submitted jobs. While a statement of a tenant runs, that tenant's further jobs wait, and
 * share the next statement and its commit. If no statement of the tenant runs, a job is inserted at
 * once. A statement that inserts a single job may also start the job, if a worker of the tenant
 * waits in this process.
 */
export class JobInserter {
  private readonly insertions: CoalescedByGroup<SerializedJob, Inserted>;

  constructor(private readonly ctx: Uses) {
    this.insertions = new CoalescedByGroup((userId, jobs) => this.insertTogether(userId, jobs), {
      maxSize: MAX_AT_ONCE,
      maxBytes: MAX_BYTES,
      bytesOf: ({ json }) => Buffer.byteLength(json),
      failsWaiting: () => ctx.connectionQueues.user.isStalled,
    });
  }

  /** Inserts nothing if the job's tenant has a budget. */
  async insert(job: UnpricedJob): Promise<Inserted> {
    return await this.insertions.add(job.user_id, serializeJob(job));
  }

  private async insertTogether(userId: string, jobs: SerializedJob[]) {
    const { pool, connectionQueues } = this.ctx;
    const [first, ...others] = jobs;
    if (first && others.length === 0) {
      return [
        await this.insertAndStart(
          userId,
          () => first.job,
          async (insert) => ({ row: await insert(pool), isNew: true }),
        ),
      ];
    }
    const insert = async (some: SerializedJob[]): Promise<Map<string, JobRow>> => {
      const rows = await connectionQueues.user.run(userId, () =>
        insertUnbudgetedJobs(pool, userId, some),
      );
      return new Map(rows.map((row) => [row.job_id, row]));
    };
    try {
      const rows = await insert(jobs);
      return jobs.map(({ job }) => ({ row: rows.get(job.job_id), hasStarted: false }));
    } catch (error) {
      // After a lost connection or a time-out, it is unknown whether the jobs were inserted.
      const wasRefused = isDatabaseError(error) && !isUnavailable(error);
      if (!wasRefused) throw error;
      // Postgres refused one of the jobs. Insert each alone, so that the others don't fail with it.
      return jobs.map(async (each) => {
        const row = (await insert([each])).get(each.job.job_id);
        return { row, hasStarted: false };
      });
    }
  }

  /**
   * Inserts a job, and starts it at once if a worker of the tenant waits in this process.
   *
   * @param run calls `insert`, perhaps within a transaction, and resolves after the commit. May
   *   repeat the transaction, and then call `insert` again. Returns `isNew: true` if the committed
   *   transaction has inserted the job; `isNew: false` if it found the job of an earlier request
   *   instead. `insert` returns undefined and inserts nothing if the tenant has a budget.
   */
  async insertAndStart<T extends { isNew: boolean }>(
    userId: string,
    job: () => UnpricedJob,
    run: (insert: (db: Queryable) => Promise<JobRow | undefined>) => Promise<T>,
  ): Promise<T & { hasStarted: boolean }> {
    const { connectionQueues, longPolls } = this.ctx;
    return await connectionQueues.user.run(userId, () =>
      longPolls.reserve(userId, async (polls) => {
        let started: Started | undefined;
        const result = await run(async (db) => {
          if (polls.length === 0) return await insertUnbudgetedJob(db, job());
          const inserted = await startNewJob(db, job(), polls);
          started = inserted.started;
          return inserted.row;
        });
        if (!started || !result.isNew) return { ...result, hasStarted: false };
        announceAssigned(this.ctx, [assignmentOf(started)], started);
        return { ...result, hasStarted: true };
      }),
    );
  }
}

const assignmentOf = ({ poll, job }: Started) => ({
  worker_id: poll.workerId,
  job_type: job.job_type,
  waited_s: 0,
});
