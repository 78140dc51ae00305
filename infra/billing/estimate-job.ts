import { type Estimate, estimateJob } from "../../core/billing/estimate";
import { monthBounds } from "../../core/billing/month";
import type { RateCard } from "../../core/billing/rate-card";
import type { JobType } from "../../core/job-types";
import type { Submission } from "../../core/payloads";
import { idsIn, referencesOf } from "../../core/references";
import { requirementsOf } from "../../core/requirements";
import type { Context } from "../context";
import { findOwnArtifacts } from "../database/artifacts";
import { readClock } from "../database/clock";
import { readUsageHistory } from "../database/step-history";
import { ownStoreOf } from "../store/open-store";

/** What a tenant's submission is expected to cost by this card. */
export async function estimateSubmission(
  ctx: Context,
  userId: string,
  type: JobType,
  { payload, params, resources }: Submission,
  card: RateCard,
): Promise<Estimate> {
  const { gpuCount, gpuTokens } = requirementsOf(type, resources, ctx.config.jobs.policy);
  const { now, end } = monthBounds(undefined, await readClock(ctx.pool));
  const history = await readUsageHistory(ctx.pool, userId, type);
  const rows = await findRows(ctx, userId, payload, params);
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

/** Of the dataset that it reads, where that is the tenant's own. */
async function findRows(
  { pool, config }: Context,
  userId: string,
  { dataset_id, dataset_uri }: Record<string, unknown>,
  params: Record<string, unknown>,
): Promise<number | null> {
  const ids = idsIn(referencesOf({ dataset_id, dataset_uri }, params, ownStoreOf(config.store)));
  const [dataset] = await findOwnArtifacts(pool, userId, ids);
  const { num_rows: rows } = (dataset?.manifest ?? {}) as { num_rows?: unknown };
  return typeof rows === "number" ? rows : null;
}
