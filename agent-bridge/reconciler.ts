import { setTimeout as sleep } from "node:timers/promises";
import { JOB_WORKFLOW, SUBMITTED_JOB_WORKFLOW } from "../core/job-workflow";
import { jobIdOfWorkflow } from "../core/workflow-ids";
import type { Context } from "../infra/context";
import { listNotStanding, listStandingJobs } from "../infra/database/standing-jobs";
import { forgetOldStuckWrites } from "../infra/database/stuck-writes";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";
import { reasonOf, TEMPORAL_DEADLINE_MS } from "../infra/temporal";
import { reconcileWorkflow } from "./job-workflows";

/** Ids read at once, of either side. */
const PAGE = 1_000;
/** Workflows asked about one by one, at once. */
const AT_ONCE = 8;
/** Of the time, how much of it comparing takes at most. */
const BUSY_SHARE = 0.2;

/**
 * Compares the open workflows that Temporal lists with the unfinished jobs of the database, as two sets, and
 * looks only at what is in one of them: a job that Temporal forgot, a workflow that outlived its job, or
 * whose job is not there. And at jobs whose end is due: the outcome is in, and the workflow does nothing.
 */
export class Reconciler implements Part {
  readonly name = "reconciler";
  private readonly loop: Loop;
  private readonly stopping = new AbortController();

  constructor(private readonly ctx: Context) {
    const everyMs = Math.min(15_000, (ctx.config.reconcileAfterS * 1000) / 4);
    this.loop = new Loop("reconciler", everyMs, () => this.sweep(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
    const { clock, pool } = this.ctx;
    const began = clock.nowMs();
    const open = await this.listOpen();
    await this.compareAll(await this.listParted(open));
    await forgetOldStuckWrites(pool);
    // With very many open jobs a sweep takes long: the next one then waits longer too.
    const restMs = (clock.nowMs() - began) * (1 / BUSY_SHARE - 1);
    await sleep(restMs, undefined, { signal: this.stopping.signal }).catch(() => undefined);
  }

  /** Ids of jobs whose workflows are open, as Temporal's index has it: it lags, so each is looked at again. */
  private async listOpen(): Promise<Set<string>> {
    const open = new Set<string>();
    // Another Forge may share the namespace: its jobs are in a database of its own.
    const { taskQueue } = this.ctx.config.temporal;
    const types = `'${JOB_WORKFLOW}', '${SUBMITTED_JOB_WORKFLOW}'`;
    const ours = `WorkflowType IN (${types}) AND TaskQueue = '${taskQueue}'`;
    const query = `${ours} AND ExecutionStatus = 'Running'`;
    const workflows = this.ctx.temporal.workflow.list({ query, pageSize: PAGE });
    for await (const { workflowId } of workflows) {
      const jobId = jobIdOfWorkflow(workflowId);
      if (jobId !== undefined) open.add(jobId);
    }
    return open;
  }

  private async listParted(open: Set<string>): Promise<string[]> {
    const { pool, config } = this.ctx;
    const afterS = config.reconcileAfterS;
    const parted: string[] = [];
    for (let afterId = ""; ; ) {
      const standing = await listStandingJobs(pool, afterS, afterId, PAGE);
      for (const { job_id: id, latest_ended: isDue } of standing) {
        if (isDue || !open.has(id)) parted.push(id);
      }
      if (standing.length < PAGE) break;
      afterId = standing.at(-1)?.job_id ?? "";
    }
    const ids = [...open];
    for (let from = 0; from < ids.length; from += PAGE) {
      parted.push(...(await listNotStanding(pool, ids.slice(from, from + PAGE), afterS)));
    }
    return parted;
  }

  private async compareAll(jobIds: string[]): Promise<void> {
    const queue = jobIds.values();
    const lane = async (): Promise<void> => {
      for (const jobId of queue) {
        if (this.stopping.signal.aborted) return;
        await this.compare(jobId);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  }

  private async compare(jobId: string): Promise<void> {
    try {
      await this.ctx.temporal.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
        reconcileWorkflow(this.ctx, jobId),
      );
    } catch (error) {
      this.ctx.logger.warn({ job_id: jobId, err: reasonOf(error) }, "cannot compare yet");
    }
  }
}
