import { type Principal, restrictingKeyId } from "../../core/accounts/permissions";
import { requireRoomForWorker } from "../accounts/require-room";
import type { Context } from "../context";
import { mayRegister, requireRoomOnKey, workerIdTaken } from "./key-binding";
import { announceLoss, lockWorkerHolding, markHeldAttemptLost } from "./lose-attempt";
import { strikeWorker } from "./strikes";
import { lockWorker, type Registration, upsertWorker } from "./workers";

/**
 * Registers a worker, or registers it again. If the worker has restarted (its boot id is new or
 * missing), marks the worker's attempt lost, unless `running` names this attempt.
 *
 * @param running the attempt that the worker still runs.
 * @returns the worker's status.
 * @throws 409 `worker_id_taken`, `quota_exceeded`
 */
export async function registerWorker(
  ctx: Context,
  principal: Principal,
  given: Omit<Registration, "userId" | "shared" | "boundKeyId" | "offerS">,
  running: { job_id?: string | null | undefined; attempt?: number | null | undefined },
): Promise<string> {
  const { workerId, bootId } = given;
  const { status, lost } = await ctx.clockWatch.transaction(async (db) => {
    const { lost, keptJobId } = await markHeldAttemptLost(
      db,
      { workerId, reason: "its worker started again", leaseS: ctx.config.outbox.firstLeaseS },
      async (held) => {
        const known = await lockWorker(db, workerId);
        const isOwner = known !== undefined && (await mayRegister(db, known, principal));
        const sameBoot = bootId !== null && known?.boot_id === bootId;
        const namesIt = running.job_id === held.job_id && running.attempt === held.attempt;
        return isOwner && !sameBoot && !namesIt;
      },
    );
    const known = await lockWorkerHolding(db, workerId, keptJobId);
    if (known && !(await mayRegister(db, known, principal))) throw workerIdTaken(workerId);
    if (!known || known.decommissioned_at !== null) {
      await requireRoomForWorker(db, ctx.config.limits.caps, principal.userId);
    }
    await requireRoomOnKey(db, principal, known);
    const registered = await upsertWorker(db, {
      ...given,
      userId: principal.userId,
      shared: principal.sharesWorkers,
      boundKeyId: restrictingKeyId(principal),
      offerS: ctx.config.fleet.offerS,
    });
    // Another tenant has registered this id in the meantime.
    if (!registered) throw workerIdTaken(workerId);
    // Add the strike for the lost attempt after the upsert, because the upsert may reset the
    // worker's strikes.
    const status = lost && (await strikeWorker(db, workerId, lost.job_id));
    return { status: status ?? registered.status, lost };
  });
  announceLoss(ctx, { lost });
  return status;
}
