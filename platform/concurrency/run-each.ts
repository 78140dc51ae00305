/** Items of a list in work at the same time: each request to a bucket is a round trip. */
const AT_ONCE = 8;

/** Runs one after the other. One that fails keeps no other from running; all failures are thrown in the end. */
export async function runEach(works: (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const work of works) await work().catch((error: unknown) => failures.push(error));
  throwAll(failures);
}

/**
 * Does something with each item of a list that is read page by page, several at the same time. One that fails keeps no
 * other from being done. A page of which nothing could be done is the last: what all need is away.
 *
 * @param size of a page. One with fewer items is the last.
 * @param list the page that comes after an item.
 */
export async function forEachPage<T>(
  size: number,
  list: (after: T | undefined) => Promise<T[]>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const failures: unknown[] = [];
  for (let after: T | undefined; ; ) {
    const page = await list(after);
    const failed = await failuresOf(page, work);
    failures.push(...failed);
    after = page.at(-1);
    if (page.length < size || failed.length === page.length) break;
  }
  throwAll(failures);
}

async function failuresOf<T>(items: T[], work: (item: T) => Promise<unknown>): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    const done = await Promise.allSettled(items.slice(at, at + AT_ONCE).map(work));
    failures.push(...done.flatMap((one) => (one.status === "rejected" ? [one.reason] : [])));
  }
  return failures;
}

/** One as it is; of several, how many there are and what the first says. */
function throwAll(failures: unknown[]): void {
  const [first, ...more] = failures;
  if (more.length > 0) throw new AggregateError(failures, `${failures.length} failed: ${first}`);
  if (failures.length > 0) throw first;
}
