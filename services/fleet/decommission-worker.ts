import type { Principal } from "../../core/accounts/permissions";
import { recordAudit } from "../accounts/audit";
import { markRevoked } from "../accounts/keys";
import type { Context } from "../context";
import { endPlacementsOfLostWorker } from "../deployments/placements";
import { announceLoss, lockWorkerHolding, markHeldAttemptLost } from "./lose-attempt";
import { markDecommissioned } from "./workers";

/**
 * Takes a worker out of the fleet at once: its attempt is lost, its placements end, and the key
 * that a bootstrap made for it is revoked.
 */
export async function decommissionWorker(
  ctx: Context,
  workerId: string,
  principal: Principal,
): Promise<void> {
  const { lost, keyId, deployments } = await ctx.clockWatch.transaction(async (db) => {
    const { firstLeaseS: leaseS } = ctx.config.outbox;
    const loss = { workerId, reason: "the worker was decommissioned", leaseS };
    const { lost } = await markHeldAttemptLost(db, loss, async () => true);
    // Read the worker's key under the worker's lock: a bootstrap may be about to replace the key.
    const worker = await lockWorkerHolding(db, workerId, undefined);
    const keyId = worker?.bootstrap_key_id ?? null;
    await markDecommissioned(db, workerId);
    if (keyId !== null) await markRevoked(db, keyId, null);
    const deployments = await endPlacementsOfLostWorker(db, workerId);
    await recordAudit(db, {
      userId: worker?.user_id ?? null,
      action: "worker_decommissioned",
      subject: workerId,
      principal,
    });
    return { lost, keyId, deployments };
  });
  announceLoss(ctx, { lost, deployments });
  if (keyId !== null) await ctx.signals.revoked(keyId);
  ctx.signals.queueChanged();
  ctx.signals.wake([workerId]);
}
