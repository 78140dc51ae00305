import { estimateJob } from "../../core/billing/estimate";
import { monthBounds } from "../../core/billing/month";
import { withAccruedCost } from "../../core/billing/record";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import { isJobType } from "../../core/jobs/job-types";
import { listAccruingRecords } from "../../services/billing/billing-records";
import type { Context } from "../../services/context";
import { isUnfinished, type ShownJob, type UnfinishedJob } from "../../services/jobs/shown-jobs";
import { readUsageHistory, type UsageSample } from "../../services/pipelines/step-history";

/**
 * How long a tenant's job history is cached, in ms. A history of few jobs is cached for less time,
 * because a new job has a larger effect on its estimates.
 */
const historyMs = (samples: unknown[]): number => (samples.length < 10 ? 1_000 : 60_000);
const MAX_HISTORIES = 1_000;
const MAX_ESTIMATES = 1_000;

interface History {
  readMs: number;
  samples: UsageSample[];
  /** Estimates in USD, by the inputs that they depend on. */
  estimates: Map<string, number>;
}

export interface JobCost {
  costUsd: number | null;
  estimatedUsd: number | null;
}

/**
 * Costs of jobs, and estimates for unfinished ones. Fast enough for lists: it does not query the
 * database for each job.
 */
export class JobCosts {
  private readonly histories = new Map<string, History>();

  constructor(private readonly ctx: Context) {}

  async of(rows: ShownJob[]): Promise<Map<string, JobCost>> {
    const accruing = await this.accruingOf(rows);
    const costs = new Map<string, JobCost>();
    for (const row of rows) {
      const costUsd = accruing.get(row.job_id) ?? row.bill?.usd ?? null;
      // After a rollback of the server, there may be jobs of a type that only the later release
      // knows.
      const isEstimated = isUnfinished(row) && isJobType(row.job_type);
      const estimatedUsd = isEstimated ? await this.estimate(row) : null;
      costs.set(row.job_id, { costUsd, estimatedUsd });
    }
    return costs;
  }

  /** The costs so far of live deployments, by job id. */
  private async accruingOf(rows: ShownJob[]): Promise<Map<string, number>> {
    const ids = rows.filter(({ bill }) => bill?.state === "accruing").map(({ job_id: id }) => id);
    if (ids.length === 0) return new Map();
    const records = await listAccruingRecords(this.ctx.pool, ids);
    return new Map(
      records.map((record) => [record.job_id, withAccruedCost(record).total_cost_usd] as const),
    );
  }

  private async estimate(job: UnfinishedJob): Promise<number> {
    // If the tenant has a budget, the job's estimate was stored at its submission.
    if (job.expected_cost_usd != null) return job.expected_cost_usd;
    const { samples, estimates } = await this.historyOf(job);
    const { job_type: type, payload, rate_card: card, req_gpu_tokens: gpuTokens } = job;
    const at = job.created_at.toISOString();
    const { end } = monthBounds(undefined, at);
    const key = JSON.stringify([
      ...[payload.size, payload.epochs, job.req_gpu_count, gpuTokens, card.name, card.version],
      // A deployment's estimate depends on its submission time: it covers the rest of the month.
      type === DEPLOYMENT_TYPE ? at : null,
    ]);
    const known = estimates.get(key);
    if (known !== undefined) return known;
    const { expectedUsd } = estimateJob({
      type,
      payload,
      gpuCount: job.req_gpu_count,
      gpuTokens,
      rows: null,
      history: samples,
      card,
      now: job.created_at,
      monthEnd: end,
    });
    if (estimates.size >= MAX_ESTIMATES) estimates.clear();
    estimates.set(key, expectedUsd.toNumber());
    return expectedUsd.toNumber();
  }

  private async historyOf({ user_id: userId, job_type: type }: ShownJob): Promise<History> {
    const key = `${type} ${userId}`;
    const nowMs = this.ctx.clock.nowMs();
    const known = this.histories.get(key);
    if (known && nowMs - known.readMs < historyMs(known.samples)) return known;
    const samples = await readUsageHistory(this.ctx.pool, userId, type);
    const history = { readMs: nowMs, samples, estimates: new Map<string, number>() };
    if (this.histories.size >= MAX_HISTORIES) this.histories.clear();
    this.histories.set(key, history);
    return history;
  }
}
