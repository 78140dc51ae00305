/** Maximum number of concurrent calls. */
const AT_ONCE = 16;

/** Runs `work` for each item and returns all results in the order of the items. */
export async function inParallel<T>(
  given: T[],
  work: (one: T) => Promise<string[]>,
): Promise<string[]> {
  const found: string[][] = [];
  const queue = given.entries();
  const lane = async (): Promise<void> => {
    for (const [n, one] of queue) found[n] = await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return found.flat();
}
