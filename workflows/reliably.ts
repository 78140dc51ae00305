import { proxyActivities, proxyLocalActivities } from "@temporalio/workflow";
import type { Activities } from "../activities";

/**
 * Activities here fail only when Postgres or the store is away, so they are tried until it is back, and
 * no error type is exempt: nothing must end because we could not write how it ended.
 */
export const untilItWorks = {
  initialInterval: "500ms",
  backoffCoefficient: 2,
  maximumInterval: "10s",
} as const;

/**
 * Each is a few statements and small files. Longer than that, and the process that had it was killed:
 * Temporal hears of that by this time-out alone.
 */
export const regular = proxyActivities<Activities>({
  startToCloseTimeout: "30s",
  retry: untilItWorks,
});

/** A quick try inside the workflow task. It gives up soon: each failing one grows the history. */
export const quick = proxyLocalActivities<Activities>({
  startToCloseTimeout: "5s",
  scheduleToCloseTimeout: "5s",
  retry: { initialInterval: "200ms", maximumAttempts: 3 },
});

/** At once where that works, else as an activity that is tried until it does. */
export async function reliably<T>(
  call: (activities: Pick<Activities, keyof Activities>) => Promise<T>,
): Promise<T> {
  try {
    return await call(quick);
  } catch {
    return await call(regular);
  }
}
