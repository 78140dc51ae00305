import { mayActFor, type Principal } from "../core/accounts/principal";
import { Conflict } from "../core/errors";
import type { Queryable } from "../platform/postgres/pool";
import { countBoundWorkers, isLiveKey, lockKey } from "../services/accounts/keys";
import type { WorkerRow } from "../services/fleet/workers";

/** The worker's id is in use, by another tenant or by a box with another key. */
export const taken = (workerId: string): Conflict =>
  new Conflict(
    "worker_id_taken",
    `worker "${workerId}" belongs to somebody else, or to another key`,
    "worker_id",
  );

/**
 * Whether this caller may register a worker that exists. A limited key may also take over one whose own
 * limited key is revoked or expired: that is how a key is replaced on a box.
 */
export async function mayRegister(
  db: Queryable,
  known: WorkerRow,
  principal: Principal,
): Promise<boolean> {
  if (mayActFor(principal, known)) return true;
  if (known.user_id !== principal.userId) return false;
  if (known.decommissioned_at !== null) return true;
  return known.bound_key_id !== null && !(await isLiveKey(db, known.bound_key_id));
}

/**
 * Call before the worker is bound to the key, in the same transaction. Locks the key, so that two workers
 * that register at once don't both take its last place.
 *
 * @throws 409 `quota_exceeded`
 */
export async function requireRoomOnKey(
  db: Queryable,
  { workerLimit, keyId }: Principal,
  known: WorkerRow | undefined,
): Promise<void> {
  if (workerLimit === null) return;
  if (known?.bound_key_id === keyId && known.decommissioned_at === null) return;
  await lockKey(db, keyId);
  const used = await countBoundWorkers(db, keyId);
  if (used < workerLimit) return;
  const message = `this key is for ${workerLimit} worker(s), and has ${used}; make a key for this one`;
  throw new Conflict("quota_exceeded", message, "worker_id");
}
