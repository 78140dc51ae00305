import { isUnavailable } from "../../platform/postgres/errors";
import type { Context } from "../context";
import { LoopComponent } from "../loop-component";
import { archiveJobs, type EndedJob, listEndedJobs } from "./archive";

/** How many jobs one statement archives. The statement takes about 0.05 s. */
const JOBS = 500;
/**
 * The maximum number of pages that one run archives, so that a run stays short if there are many
 * old jobs. The next run continues after the last page.
 */
const PAGES = 5;

/** Archives jobs that ended more than `archiveAfterS` ago. */
export class Archiver extends LoopComponent {
  private after: EndedJob | undefined;

  constructor(ctx: Context) {
    super(ctx, "archiver", ctx.config.sweep.intervalS * 1000);
  }

  protected async run(): Promise<void> {
    const { clockWatch, config } = this.ctx;
    for (let pages = 0; pages < PAGES; pages++) {
      // With `requireKnownClock`, the transaction fails while it is unknown whether the database's
      // clock was changed. If the clock was set forward, jobs would seem older than they are.
      const page = await clockWatch.transaction(
        (db) => listEndedJobs(db, config.jobs.archiveAfterS, this.after, JOBS),
        { requireKnownClock: true },
      );
      if (page.length > 0) await this.archive(page.map(({ job_id }) => job_id));
      this.after = page.length === JOBS ? page.at(-1) : undefined;
      if (!this.after) return;
    }
  }

  /**
   * Archives jobs. If Postgres refuses one of them, archives the others.
   *
   * @param jobIds at least one id: an empty list can't be halved.
   */
  private async archive(jobIds: string[]): Promise<void> {
    try {
      await archiveJobs(this.ctx.pool, jobIds);
    } catch (error) {
      if (isUnavailable(error)) throw error;
      if (jobIds.length === 1) {
        this.ctx.logger.error({ job_id: jobIds[0], err: String(error) }, "job not archived");
        return;
      }
      const half = Math.ceil(jobIds.length / 2);
      await this.archive(jobIds.slice(0, half));
      await this.archive(jobIds.slice(half));
    }
  }
}
