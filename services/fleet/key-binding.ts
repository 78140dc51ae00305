import { mayActFor, type Principal } from "../../core/accounts/permissions";
import { Conflict } from "../../core/errors";
import type { Queryable } from "../../platform/postgres/pool";
import { countBoundWorkers, isLiveKey, lockKey } from "../accounts/keys";
import type { WorkerRow } from "./workers";

/** The worker's id is in use by another tenant, or by a machine with another key. */
export function workerIdTaken(workerId: string): Conflict {
  const message = `worker "${workerId}" belongs to another tenant or to another key`;
  return new Conflict("worker_id_taken", message, "worker_id");
}

/**
 * Whether the caller may register an existing worker again. A limited key is one that only a
 * limited number of workers may use. If a worker's own limited key is revoked or expired, another
 * limited key of the same tenant may take over the worker: this is how a machine's key is replaced.
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
 * Checks that the caller's key allows one more worker. Call this before the worker is bound to the
 * key, in the same transaction. Locks the key: otherwise two workers that register at the same time
 * could exceed the limit.
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
  const message = `this key allows ${workerLimit} worker(s) and has ${used}; create another key for this worker`;
  throw new Conflict("quota_exceeded", message, "worker_id");
}
