import { idsIn, referencesOf } from "../../core/artifacts/source-references";
import { type Estimate, estimateJob } from "../../core/billing/estimate";
import { monthBounds } from "../../core/billing/month";
import type { RateCard } from "../../core/billing/rate-card";
import type { JobType } from "../../core/jobs/job-types";
import type { Submission } from "../../core/jobs/payloads";
import { requirementsOf } from "../../core/jobs/requirements";
import { readClock } from "../../platform/postgres/clock";
import { ownStoreOf } from "../../platform/store/open-store";
import { findOwnArtifacts } from "../artifacts/artifacts";
import type { Context } from "../context";
import { readUsageHistory } from "../pipelines/step-history";

export async function estimateSubmission(
  ctx: Context,
  userId: string,
  type: JobType,
  { payload, resources }: Submission,
  card: RateCard,
): Promise<Estimate> {
  const { gpuCount, gpuTokens } = requirementsOf(type, resources, ctx.config.jobs.policy);
  const { now, end } = monthBounds(undefined, await readClock(ctx.pool));
  const history = await readUsageHistory(ctx.pool, userId, type);
  const rows = await findRows(ctx, userId, payload);
  return estimateJob({
    type,
    payload,
    gpuCount,
    gpuTokens,
    rows,
    history,
    card,
    now,
    monthEnd: end,
  });
}

/**
 * The number of rows of the dataset or benchmark that a job reads. Null if the number is unknown,
 * or if the dataset or benchmark does not belong to the tenant.
 */
export async function findRows(
  { pool, config }: Pick<Context, "pool" | "config">,
  userId: string,
  { dataset_id, dataset_uri, benchmark }: Record<string, unknown>,
): Promise<number | null> {
  const named = { dataset_id, dataset_uri, benchmark };
  const ids = idsIn(referencesOf(named, {}, ownStoreOf(config.store)));
  const [dataset] = await findOwnArtifacts(pool, userId, ids);
  const facts = (dataset?.manifest ?? {}) as { num_rows?: unknown; verified?: unknown };
  // A count that only a worker has reported is not trusted.
  return typeof facts.num_rows === "number" && facts.verified !== false ? facts.num_rows : null;
}
