import type { Context } from "../infra/context";
import { forgetOldKeys } from "../infra/database/idempotency";
import { claimStandingJobs, type StandingJob } from "../infra/database/jobs";
import { oweAgain } from "../infra/database/outbox";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";
import { TEMPORAL_DEADLINE_MS } from "../infra/temporal";
import { reconcileWorkflow } from "./job-workflows";

const BATCH = 20;

/** Finds jobs that Temporal forgot: terminated by hand, or lost with a database of its own. */
export class Reconciler implements Part {
  readonly name = "reconciler";
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    const everyMs = Math.min(15_000, (ctx.config.reconcileAfterS * 1000) / 4);
    this.loop = new Loop("reconciler", everyMs, () => this.sweep(), ctx.logger);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
    const standing = await claimStandingJobs(this.ctx.pool, this.ctx.config.reconcileAfterS, BATCH);
    for (const job of standing) {
      await this.ctx.temporal
        .withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () => this.compare(job))
        .catch((error: unknown) =>
          this.ctx.logger.warn({ job_id: job.job_id, err: String(error) }, "cannot compare yet"),
        );
    }
    await forgetOldKeys(this.ctx.pool);
  }

  private async compare(job: StandingJob): Promise<void> {
    const waits = await reconcileWorkflow(this.ctx, job, job.latest_attempt);
    // The outcome is there and owed to nobody, and yet the workflow does not know it.
    if (waits && job.latest_ended) await oweAgain(this.ctx.pool, job.job_id, job.latest_attempt);
  }
}
