import { setTimeout as sleep } from "node:timers/promises";
import type { RankedTenants } from "../../core/fleet/matching";
import {
  betweenAttempts,
  type Eligibility,
  eligibilityOf,
  explainPending,
  type FleetMember,
  type PendingReason,
  type WaitingJob,
} from "../../core/jobs/pending-reason";
import type { Queue } from "../../core/jobs/queue-position";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { waitsForWorker } from "../../core/jobs/states";
import type { Context } from "../../services/context";
import { requirementsOfJob } from "../../services/jobs/jobs";
import { listQueued, readFleet, readQueue } from "../../services/jobs/queue-view";
import { isUnfinished, type ShownJob, type UnfinishedJob } from "../../services/jobs/shown-jobs";
import { JobCosts } from "../billing/job-costs";
import { type Job, presentJob } from "./present-job";

/**
 * Limits of the maximum age of the cached view of the fleet and the queue, in ms. The maximum age
 * is VIEW_FACTOR times the time spent on explaining jobs (computing why they wait) with this view,
 * but at least `least` and at most `most`. The more time was spent, the longer the view is used,
 * because a new view must compute its `outlooks` again.
 */
const VIEW_MS = { least: 1_000, most: 5_000 };
const VIEW_FACTOR = 20;
/** After explaining jobs for this many ms, pause for the same time, so that other work can run. */
const SLICE_MS = 3;

interface View {
  fleet: FleetMember[];
  queue: Queue;
  /** Which workers can run the jobs of a requirement group, by group. Computed on demand. */
  outlooks: Map<string, Eligibility>;
}

/** Presents jobs with their pending reasons and costs. */
export class JobPresenter {
  private view: Promise<View> | undefined;
  private readMs = 0;
  /** Time spent on explaining jobs with the cached view, in ms. Excludes pauses. */
  private spentMs = 0;

  private readonly costs: JobCosts;

  constructor(private readonly ctx: Context) {
    this.costs = new JobCosts(ctx);
  }

  async presentOne(row: ShownJob): Promise<Job> {
    return (await this.present([row]))(row);
  }

  async present<Row extends ShownJob>(rows: Row[]): Promise<(row: Row) => Job> {
    const reasons = await this.reasonsOf(rows);
    const costs = await this.costs.of(rows);
    return (row) =>
      presentJob(row, {
        pendingReason: reasons.get(row.job_id),
        cost: costs.get(row.job_id),
        workflowUrl: this.workflowUrl,
      });
  }

  private readonly workflowUrl = (workflowId: string): string | null => {
    const { uiUrl, namespace } = this.ctx.config.temporal;
    if (uiUrl === null) return null;
    return `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflowId)}`;
  };

  private async reasonsOf(rows: ShownJob[]): Promise<Map<string, PendingReason>> {
    const waiting = rows.filter(isUnfinished).filter(({ status }) => waitsForWorker(status));
    if (waiting.length === 0) return new Map();
    const ids = waiting.map((job) => job.job_id);
    const queued = new Map(
      (await listQueued(this.ctx.pool, ids)).map((row) => [row.job_id, row.queued_at]),
    );
    const reasons = new Map<string, PendingReason>();
    const inQueue: WaitingJob[] = [];
    for (const job of waiting) {
      const queuedAt = queued.get(job.job_id);
      if (queuedAt === undefined) reasons.set(job.job_id, betweenAttempts(job.attempts));
      else inQueue.push(waitingJobOf(job, queuedAt));
    }
    const explained = await this.explain(inQueue);
    for (const [at, { jobId }] of inQueue.entries()) {
      const reason = explained[at];
      if (reason) reasons.set(jobId, reason);
    }
    return reasons;
  }

  /**
   * Returns why each job waits, in the order of `jobs`. The fleet and queue that it reads are at
   * most VIEW_MS.most ms old.
   */
  async explain(jobs: WaitingJob[]): Promise<PendingReason[]> {
    if (jobs.length === 0) return [];
    const view = await this.currentView();
    const { rankedTenants } = this.ctx.config.fleet;
    const reasons: PendingReason[] = [];
    let began = performance.now();
    for (const job of jobs) {
      // In a large fleet, explaining a page of jobs with different requirements takes a while. The
      // pauses let the process answer heartbeats in between.
      const spentMs = performance.now() - began;
      if (spentMs > SLICE_MS) {
        this.spentMs += spentMs;
        await sleep(spentMs);
        began = performance.now();
      }
      reasons.push(explain(view, job, rankedTenants));
    }
    this.spentMs += performance.now() - began;
    return reasons;
  }

  private currentView(): Promise<View> {
    const nowMs = this.ctx.clock.nowMs();
    const maxAgeMs = Math.min(VIEW_MS.most, Math.max(VIEW_MS.least, VIEW_FACTOR * this.spentMs));
    if (!this.view || nowMs - this.readMs > maxAgeMs) {
      this.readMs = nowMs;
      this.spentMs = 0;
      this.view = this.read();
      // Drop a failed read, so that the next call reads again.
      this.view.catch(() => {
        this.view = undefined;
      });
    }
    return this.view;
  }

  private async read(): Promise<View> {
    const [fleet, queue] = await Promise.all([readFleet(this.ctx.pool), readQueue(this.ctx.pool)]);
    return { fleet, queue, outlooks: new Map() };
  }
}

function explain(view: View, job: WaitingJob, ranked: RankedTenants): PendingReason {
  const { fleet, queue, outlooks } = view;
  const group = requirementGroupOf(job.userId, job);
  const outlook = outlooks.get(group) ?? eligibilityOf(job, fleet);
  outlooks.set(group, outlook);
  return explainPending(job, fleet, queue, ranked, outlook);
}

const waitingJobOf = (job: UnfinishedJob, queuedAt: number): WaitingJob => ({
  jobId: job.job_id,
  userId: job.user_id,
  priority: job.priority,
  queuedAt,
  ...requirementsOfJob(job),
});
