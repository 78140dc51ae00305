import { Unavailable } from "../../core/errors";
import { CoalescedByGroup } from "../../platform/concurrency/coalesce";
import { isUnavailable } from "../../platform/postgres/errors";
import type { Context } from "../context";
import { insertUnbudgetedJobs, type JobRow, type UnpricedJob } from "./jobs";

/** Each job may have a payload of a megabyte. */
const MAX_AT_ONCE = 16;

/** The row; undefined if the tenant has a budget; an error if this job can't be inserted. */
type Inserted = JobRow | undefined | Error;

/**
 * Inserts submitted jobs. While a statement of a tenant runs, that tenant's further jobs wait, and share the next
 * statement and its commit. A job alone is inserted at once.
 */
export class JobInserter {
  private readonly insertions: CoalescedByGroup<UnpricedJob, Inserted>;

  constructor({ pool, connectionQueues }: Pick<Context, "pool" | "connectionQueues">) {
    const insert = async (userId: string, jobs: UnpricedJob[]): Promise<Inserted[]> => {
      try {
        const rows = await connectionQueues.user.run(userId, () =>
          insertUnbudgetedJobs(pool, userId, jobs),
        );
        const byId = new Map(rows.map((row) => [row.job_id, row]));
        return jobs.map(({ job_id: id }) => byId.get(id));
      } catch (error) {
        if (error instanceof Unavailable || isUnavailable(error)) throw error;
        if (jobs.length === 1) return [error as Error];
        // Insert each job alone, so that one that Postgres refuses does not fail the others.
        return (await Promise.all(jobs.map((job) => insert(userId, [job])))).flat();
      }
    };
    this.insertions = new CoalescedByGroup(insert, MAX_AT_ONCE);
  }

  /** Returns undefined and inserts nothing if the job's tenant has a budget. */
  async insert(job: UnpricedJob): Promise<JobRow | undefined> {
    const inserted = await this.insertions.add(job.user_id, job);
    if (inserted instanceof Error) throw inserted;
    return inserted;
  }
}
