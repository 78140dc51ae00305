import type { Cap, CapName } from "../../platform/config/limits";
import type { Queryable } from "../../platform/postgres/pool";
import { requireBelow } from "./quota-exceeded";
import { countKeys, countWorkers, lockTenant, sumStoredBytes } from "./quotas";
import { countSessions } from "./sessions";

type Caps = Record<CapName, Cap>;

/**
 * Returns a function that locks the tenant's row and checks a cap. Call that function in the
 * transaction that adds the counted object. It throws 409 `quota_exceeded`.
 */
const requireRoom =
  (cap: CapName, count: (db: Queryable, userId: string) => Promise<number>) =>
  async (db: Queryable, caps: Caps, userId: string): Promise<void> => {
    await lockTenant(db, userId);
    requireBelow(caps[cap], await count(db, userId));
  };

export const requireRoomForKey = requireRoom("keys", countKeys);
export const requireRoomForSession = requireRoom("sessions", countSessions);
export const requireRoomForWorker = requireRoom("workers", countWorkers);

/**
 * Checks the cap of stored bytes, without a lock. Call it before adding files to the store.
 *
 * @throws 409 `quota_exceeded`
 */
export async function requireRoomForBytes(
  db: Queryable,
  { stored_bytes: cap }: Caps,
  userId: string,
): Promise<void> {
  if (cap.limit !== null) requireBelow(cap, await sumStoredBytes(db, userId));
}
