import type { TenantScope } from "../../core/accounts/permissions";
import { splitByMonth } from "../../core/billing/accrual";
import { usageOfLine } from "../../core/billing/line-usage";
import { priceJob } from "../../core/billing/price-job";
import { portionsOf } from "../../core/billing/record";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import type { Queryable } from "../../platform/postgres/pool";
import { closeRecord, insertShares } from "../billing/billing-records";
import type { Context } from "../context";
import { lockDeployment, markStopping, type StoppedRow } from "./deployments";
import { stopPlacements } from "./placements";

/**
 * Stops a deployment: one transaction ends its accrual, closes its bill, and marks its servers to
 * stop. Does not call Temporal; the courier wakes the workflow later. Idempotent.
 *
 * @returns false if the tenant scope has no such deployment.
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
    if (!stopped) return "already";
    await stopPlacements(db, deploymentId);
    // Close the bill last, because that locks the month's totals, which all bills of the tenant
    // share.
    await closeBill(db, stopped);
    return "now";
  });
  if (done === "now") {
    ctx.logger.info({ deployment_id: deploymentId, stopped_by: stoppedBy }, "deployment stopped");
    ctx.signals.emit("deployment", deploymentId);
  }
  return done !== "unknown";
}

/**
 * Closes the bill over the deployment's whole lifetime. Writes the missing billing lines, one per
 * month, each with that month's share of the bill.
 */
async function closeBill(db: Queryable, row: StoppedRow): Promise<void> {
  const { job_id: jobId, rate_card: card, lived, written } = row;
  const days = lived.at(-1)?.days ?? 0;
  const metrics = { ...row.metrics, deployment_lifetime_days: days };
  const portions = portionsOf({ ...row, metrics });
  const bill = priceJob(DEPLOYMENT_TYPE, portions, card);
  if (!(await closeRecord(db, jobId, metrics, bill))) {
    throw new Error(`the bill of ${jobId} is closed, but its deployment was not stopped`);
  }
  const shares = splitByMonth(DEPLOYMENT_TYPE, portions, card, lived, written);
  await insertShares(db, jobId, shares, usageOfLine(row));
}
