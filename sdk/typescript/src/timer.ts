/** What is longer, setTimeout takes for 1 ms: some 25 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** setTimeout, for any time; what is too long ends early. */
export function after(ms: number, act: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(act, Math.min(ms, LONGEST_MS));
}
