import type { TenantScope } from "../../core/accounts/principal";
import { splitByMonth } from "../../core/billing/accrual";
import { usageOfLine } from "../../core/billing/line";
import { priceJob } from "../../core/billing/pricing";
import { portionsOf } from "../../core/billing/record";
import type { Queryable } from "../../platform/postgres/pool";
import { closeRecord, insertShares } from "../billing/billing-records";
import type { Context } from "../context";
import { lockDeployment, markStopping, type StoppedRow } from "./deployments";
import { stopPlacements } from "./placements";

/**
 * Stops a deployment: in one transaction its accrual ends, its bill is closed, and its servers are to
 * stop. Temporal is not asked: it follows. One that is stopped stays so.
 *
 * @returns false where this viewer has none of this id.
 */
export async function stopDeployment(
  ctx: Context,
  deploymentId: string,
  tenantScope: TenantScope,
  stoppedBy: string,
): Promise<boolean> {
  const done = await ctx.clockWatch.transaction(async (db) => {
    const deployment = await lockDeployment(db, deploymentId);
    if (!deployment || (tenantScope !== null && deployment.user_id !== tenantScope))
      return "unknown";
    const stopped = await markStopping(db, deploymentId, stoppedBy);
    if (!stopped) return "before";
    await stopPlacements(db, deploymentId);
    // Last, for its month's sums are every bill's of its tenant.
    await closeBill(db, stopped);
    return "now";
  });
  if (done === "now") {
    ctx.logger.info({ deployment_id: deploymentId, stopped_by: stoppedBy }, "deployment stopped");
    ctx.signals.emit("deployment", deploymentId);
  }
  return done !== "unknown";
}

/** The bill of its whole life, and what each month bears of it. */
async function closeBill(db: Queryable, row: StoppedRow): Promise<void> {
  const { job_id: jobId, rate_card: card, lived, written } = row;
  const days = lived.at(-1)?.days ?? 0;
  const metrics = { ...row.metrics, deployment_lifetime_days: days };
  const portions = portionsOf({ ...row, metrics });
  const bill = priceJob("deploy", portions, card);
  if (!(await closeRecord(db, jobId, metrics, bill))) {
    throw new Error(`the bill of ${jobId} is closed, and its deployment was not stopped`);
  }
  const shares = splitByMonth("deploy", portions, card, lived, written);
  await insertShares(db, jobId, shares, usageOfLine(row));
}
