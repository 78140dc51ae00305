import type { Cap, CapName } from "../../platform/config/limits";
import type { Queryable } from "../../platform/postgres/pool";
import { requireBelow } from "./quota-exceeded";
import { countKeys, countWorkers, lockTenant, sumStoredBytes } from "./quotas";
import { countSessions } from "./sessions";

type Caps = Record<CapName, Cap>;

/** Call in the transaction that creates the key. @throws 409 `quota_exceeded` */
export async function requireRoomForKey(db: Queryable, caps: Caps, userId: string): Promise<void> {
  await lockTenant(db, userId);
  requireBelow(caps.keys, await countKeys(db, userId));
}

/** Call in the transaction that creates the session. @throws 409 `quota_exceeded` */
export async function requireRoomForSession(
  db: Queryable,
  caps: Caps,
  userId: string,
): Promise<void> {
  await lockTenant(db, userId);
  requireBelow(caps.sessions, await countSessions(db, userId));
}

/** Call in the transaction that registers a new worker. @throws 409 `quota_exceeded` */
export async function requireRoomForWorker(
  db: Queryable,
  caps: Caps,
  userId: string,
): Promise<void> {
  await lockTenant(db, userId);
  requireBelow(caps.workers, await countWorkers(db, userId));
}

/** Call before something is added to the store. @throws 409 `quota_exceeded` */
export async function requireRoomForBytes(
  db: Queryable,
  { stored_bytes: cap }: Caps,
  userId: string,
): Promise<void> {
  if (cap.limit !== null) requireBelow(cap, await sumStoredBytes(db, userId));
}
