import type { Queryable } from "../database/pool";
import { countKeys, countWorkers, lockTenant, sumStoredBytes } from "../database/quotas";
import { countSessions } from "../database/sessions";
import type { Cap, CapName } from "../limits-config";
import { requireBelow } from "./quota-exceeded";

type Caps = Record<CapName, Cap>;

/** In the transaction that makes the key. @throws 409 `quota_exceeded` */
export async function requireRoomForKey(db: Queryable, caps: Caps, userId: string): Promise<void> {
  await lockTenant(db, userId);
  requireBelow(caps.keys, await countKeys(db, userId));
}

/** In the transaction that creates the session. @throws 409 `quota_exceeded` */
export async function requireRoomForSession(
  db: Queryable,
  caps: Caps,
  userId: string,
): Promise<void> {
  await lockTenant(db, userId);
  requireBelow(caps.sessions, await countSessions(db, userId));
}

/** In the transaction that registers a worker which is not there. @throws 409 `quota_exceeded` */
export async function requireRoomForWorker(
  db: Queryable,
  caps: Caps,
  userId: string,
): Promise<void> {
  await lockTenant(db, userId);
  requireBelow(caps.workers, await countWorkers(db, userId));
}

/** Of what adds to the store, before it begins. @throws 409 `quota_exceeded` */
export async function requireRoomForBytes(
  db: Queryable,
  { stored_bytes: cap }: Caps,
  userId: string,
): Promise<void> {
  if (cap.limit !== null) requireBelow(cap, await sumStoredBytes(db, userId));
}
