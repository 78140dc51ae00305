/** About 25 days. setTimeout treats longer times as 1 ms. */
const LONGEST_MS = 2 ** 31 - 1;

/** setTimeout for any time. Times above the maximum end early. */
export function after(ms: number, act: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(act, Math.min(ms, LONGEST_MS));
}
