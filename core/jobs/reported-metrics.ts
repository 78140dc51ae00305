const MAX_METRICS = 32;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}$/;

/** The finite numbers of a worker's report, at most 32. Drops names that can't be displayed. */
export function reportedMetrics(given: unknown): Record<string, number> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return {};
  const numbers = Object.entries(given).filter(
    (entry): entry is [string, number] => NAME.test(entry[0]) && Number.isFinite(entry[1]),
  );
  return Object.fromEntries(numbers.slice(0, MAX_METRICS));
}
