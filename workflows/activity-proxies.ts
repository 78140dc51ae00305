import { proxyActivities, proxyLocalActivities } from "@temporalio/workflow";
import type { Activities } from "../activities";

/**
 * Retries forever, except after a failure that the activity itself marks as non-retryable. Other
 * failures are usually temporary: Postgres or the store is down, or an event that the activity
 * needs has not happened yet. A workflow must not end because its outcome could not be written.
 */
export const unlimitedRetries = {
  initialInterval: "500ms",
  backoffCoefficient: 2,
  maximumInterval: "10s",
} as const;

/**
 * Activities that only run a few SQL statements and write small files. They send no heartbeats: if
 * their process is killed, Temporal retries them only after the time-out.
 */
export const regularActivities = proxyActivities<Activities>({
  startToCloseTimeout: "30s",
  retry: unlimitedRetries,
});

/**
 * Activities that run inside the workflow task. They have few retries, because each failure adds to
 * the history. They have no time-out for a single try (`startToCloseTimeout`). With this time-out,
 * the SDK would retry even after `scheduleToCloseTimeout` has passed. The workflow would then wait
 * for three tries of 5 s each, instead of 5 s in total.
 */
export const localActivities = proxyLocalActivities<Activities>({
  scheduleToCloseTimeout: "5s",
  retry: { initialInterval: "200ms", maximumAttempts: 3 },
});

/**
 * Calls a local activity. If it fails, calls the same activity as a regular one, with unlimited
 * retries.
 */
export async function localFirst<T>(
  call: (activities: Pick<Activities, keyof Activities>) => Promise<T>,
): Promise<T> {
  try {
    return await call(localActivities);
  } catch {
    return await call(regularActivities);
  }
}
