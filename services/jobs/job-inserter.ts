import { CoalescedByGroup } from "../../platform/concurrency/coalesce";
import { isDatabaseError, isUnavailable } from "../../platform/postgres/errors";
import type { Context } from "../context";
import {
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

/**
 * Inserts submitted jobs. While a statement of a tenant runs, that tenant's further jobs wait, and
 * share the next statement and its commit. If no statement of the tenant runs, a job is inserted at
 * once.
 */
export class JobInserter {
  private readonly insertions: CoalescedByGroup<SerializedJob, JobRow | undefined>;

  constructor(private readonly ctx: Pick<Context, "pool" | "connectionQueues">) {
    this.insertions = new CoalescedByGroup((userId, jobs) => this.insertTogether(userId, jobs), {
      maxSize: MAX_AT_ONCE,
      maxBytes: MAX_BYTES,
      bytesOf: ({ json }) => Buffer.byteLength(json),
      failsWaiting: () => ctx.connectionQueues.user.isStalled,
    });
  }

  /** Returns undefined and inserts nothing if the job's tenant has a budget. */
  async insert(job: UnpricedJob): Promise<JobRow | undefined> {
    return await this.insertions.add(job.user_id, serializeJob(job));
  }

  private async insertTogether(userId: string, jobs: SerializedJob[]) {
    const { pool, connectionQueues } = this.ctx;
    const insert = async (some: SerializedJob[]): Promise<Map<string, JobRow>> => {
      const rows = await connectionQueues.user.run(userId, () =>
        insertUnbudgetedJobs(pool, userId, some),
      );
      return new Map(rows.map((row) => [row.job_id, row]));
    };
    try {
      const rows = await insert(jobs);
      return jobs.map(({ job }) => rows.get(job.job_id));
    } catch (error) {
      // After a lost connection or a time-out, it is unknown whether the jobs were inserted.
      const wasRefused = isDatabaseError(error) && !isUnavailable(error);
      if (jobs.length === 1 || !wasRefused) throw error;
      // Postgres refused one of the jobs. Insert each alone, so that the others don't fail with it.
      return jobs.map(async (each) => (await insert([each])).get(each.job.job_id));
    }
  }
}
