import { setTimeout as sleep } from "node:timers/promises";
import type { RankedTenants } from "../../core/fleet/matching";
import {
  betweenAttempts,
  explainPending,
  type FleetMember,
  type Outlook,
  outlookOf,
  type PendingReason,
  type QueuedGroup,
  type WaitingJob,
} from "../../core/jobs/pending-reason";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { waitsForWorker } from "../../core/jobs/states";
import type { Context } from "../../services/context";
import type { JobRow } from "../../services/jobs/jobs";
import { listQueued, readFleet, readQueue } from "../../services/jobs/queue-view";
import { JobCosts } from "../billing/job-costs";
import { type Job, presentJob } from "./present-job";

/** Fleet and queue are read anew after so long: later, in these bounds, where a large fleet takes time to explain. */
const VIEW_MS = { least: 1_000, most: 5_000 };
const VIEW_FACTOR = 20;
/** Spent on explaining jobs at a time; then whatever else is due has as long. */
const TURN_MS = 3;

interface View {
  fleet: FleetMember[];
  queue: QueuedGroup[];
  /** By shape, as they are asked for. */
  outlooks: Map<string, Outlook>;
}

/** Shows jobs as the API does: with the reason why one waits, where it does, and their costs. */
export class JobPresenter {
  private view: Promise<View> | undefined;
  private readMs = 0;
  /** On explaining by this view. */
  private spentMs = 0;

  private readonly costs: JobCosts;

  constructor(private readonly ctx: Context) {
    this.costs = new JobCosts(ctx);
  }

  async presentOne(row: JobRow): Promise<Job> {
    return (await this.present([row]))(row);
  }

  async present<Row extends JobRow>(rows: Row[]): Promise<(row: Row) => Job> {
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

  private async reasonsOf(rows: JobRow[]): Promise<Map<string, PendingReason>> {
    const waiting = rows.filter(({ status }) => waitsForWorker(status));
    if (waiting.length === 0) return new Map();
    const ids = waiting.map((job) => job.job_id);
    const queued = new Map(
      (await listQueued(this.ctx.pool, ids)).map((row) => [row.job_id, row.queued_at]),
    );
    const reasons = new Map(
      waiting
        .filter(({ job_id: id }) => !queued.has(id))
        .map((job) => [job.job_id, betweenAttempts(job.attempts)] as const),
    );
    const inQueue = waiting.flatMap((job) => {
      const queuedAt = queued.get(job.job_id);
      return queuedAt === undefined ? [] : [wantsOf(job, queuedAt)];
    });
    const explained = await this.explain(inQueue);
    for (const [at, { jobId }] of inQueue.entries()) {
      const reason = explained[at];
      if (reason) reasons.set(jobId, reason);
    }
    return reasons;
  }

  /** Why each of these jobs waits, in their order, by a view that is a second old at most. */
  async explain(jobs: WaitingJob[]): Promise<PendingReason[]> {
    if (jobs.length === 0) return [];
    const view = await this.look();
    const { rankedTenants } = this.ctx.config.fleet;
    const reasons: PendingReason[] = [];
    let began = performance.now();
    for (const job of jobs) {
      // A page of different jobs takes a while in a large fleet, whose heartbeats must not wait for it.
      const spentMs = performance.now() - began;
      if (spentMs > TURN_MS) {
        this.spentMs += spentMs;
        await sleep(spentMs);
        began = performance.now();
      }
      reasons.push(explain(view, job, rankedTenants));
    }
    return reasons;
  }

  private look(): Promise<View> {
    const nowMs = this.ctx.clock.nowMs();
    const lastsMs = Math.min(VIEW_MS.most, Math.max(VIEW_MS.least, VIEW_FACTOR * this.spentMs));
    if (!this.view || nowMs - this.readMs > lastsMs) {
      this.readMs = nowMs;
      this.spentMs = 0;
      this.view = this.read();
      // The next one asks again.
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
  const shape = requirementGroupOf(job.userId, job);
  const outlook = outlooks.get(shape) ?? outlookOf(job, fleet);
  outlooks.set(shape, outlook);
  return explainPending(job, fleet, queue, ranked, outlook);
}

const wantsOf = (job: JobRow, queuedAt: number): WaitingJob => ({
  jobId: job.job_id,
  userId: job.user_id,
  priority: job.priority,
  queuedAt,
  jobType: job.job_type,
  gpuCount: job.req_gpu_count,
  gpuTokens: job.req_gpu_tokens,
  memoryGb: job.req_memory_gb,
  tags: job.req_tags,
  avoid: job.req_avoid,
});
