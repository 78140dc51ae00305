import type { Cap, CapName } from "../../platform/config/limits";
import type { Queryable } from "../../platform/postgres/pool";
import { requireBelow } from "./quota-exceeded";
import { countKeys, countWorkers, lockTenant, sumStoredBytes } from "./quotas";
import { countSessions } from "./sessions";

type Caps = Record<CapName, Cap>;

/** Checks a cap under the tenant's lock. Call it in the transaction that adds one more. @throws 409 `quota_exceeded` */
const requireRoom =
  (cap: CapName, count: (db: Queryable, userId: string) => Promise<number>) =>
  async (db: Queryable, caps: Caps, userId: string): Promise<void> => {
    await lockTenant(db, userId);
    requireBelow(caps[cap], await count(db, userId));
  };

export const requireRoomForKey = requireRoom("keys", countKeys);
export const requireRoomForSession = requireRoom("sessions", countSessions);
export const requireRoomForWorker = requireRoom("workers", countWorkers);

/** Checks the cap of stored bytes. Call it before something is added to the store. @throws 409 `quota_exceeded` */
export async function requireRoomForBytes(
  db: Queryable,
  { stored_bytes: cap }: Caps,
  userId: string,
): Promise<void> {
  if (cap.limit !== null) requireBelow(cap, await sumStoredBytes(db, userId));
}
