/** The longest time that setTimeout supports, about 25 days. Longer times act like 1 ms. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls `act` after `ms`, or after LONGEST_MS if `ms` is longer. */
export function after(ms: number, act: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(act, Math.min(ms, LONGEST_MS));
}
