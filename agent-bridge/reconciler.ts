import { WorkflowNotFoundError } from "@temporalio/client";
import { attemptOfActivityId, jobWorkflowId } from "../core/workflow-ids";
import type { Context } from "../infra/context";
import { forgetOldKeys } from "../infra/database/idempotency";
import { claimStandingJobs, type StandingJob } from "../infra/database/jobs";
import { oweAgain } from "../infra/database/outbox";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";
import { TEMPORAL_DEADLINE_MS } from "../infra/temporal";
import { startJobWorkflow } from "./job-workflows";

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
      await this.ctx.temporal.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
        this.compare(job),
      );
    }
    await forgetOldKeys(this.ctx.pool);
  }

  private async compare(job: StandingJob): Promise<void> {
    const handle = this.ctx.temporal.workflow.getHandle(jobWorkflowId(job.job_id));
    const awaited = await awaitedAttempts(() => handle.describe());
    if (awaited === undefined) {
      this.ctx.logger.warn({ job_id: job.job_id }, "its workflow is gone; starting it again");
      await startJobWorkflow(this.ctx, job, "again");
      return;
    }
    if (awaited.some((attempt) => attempt > job.latest_attempt)) {
      this.ctx.logger.warn({ job_id: job.job_id }, "its workflow waits for an unknown attempt");
      await handle.terminate("waits for an attempt that the database lacks; started again");
      await startJobWorkflow(this.ctx, job, "again");
      return;
    }
    if (job.latest_ended && awaited.includes(job.latest_attempt)) {
      await oweAgain(this.ctx.pool, job.job_id, job.latest_attempt);
    }
  }
}

interface Described {
  status: { name: string };
  raw: { pendingActivities?: { activityId?: string | null }[] | null };
}

/** The attempts that a running workflow waits for; undefined when it is closed or never was. */
async function awaitedAttempts(describe: () => Promise<Described>): Promise<number[] | undefined> {
  try {
    const { status, raw } = await describe();
    if (status.name !== "RUNNING") return undefined;
    return (raw.pendingActivities ?? [])
      .map(({ activityId }) => attemptOfActivityId(activityId ?? ""))
      .filter((attempt) => attempt !== undefined);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}
