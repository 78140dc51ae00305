/** Items of a list in work at the same time: each request to a bucket is a round trip. */
const AT_ONCE = 8;

/** Notes failures while others go on, and throws the first in the end. */
class Failures {
  private readonly found: unknown[] = [];

  readonly add = (error: unknown): void => {
    this.found.push(error);
  };

  throwFirst(): void {
    if (this.found.length > 0) throw this.found[0];
  }
}

/** Runs one after the other. One that fails keeps no other from running; the first failure is thrown in the end. */
export async function runEach(works: (() => Promise<unknown>)[]): Promise<void> {
  const failures = new Failures();
  for (const work of works) await work().catch(failures.add);
  failures.throwFirst();
}

/** The same for the items of a list, several at the same time. */
export async function forEachItem<T>(
  items: T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const failures = new Failures();
  for (let at = 0; at < items.length; at += AT_ONCE) {
    await Promise.all(items.slice(at, at + AT_ONCE).map((item) => work(item).catch(failures.add)));
  }
  failures.throwFirst();
}

/**
 * The same for a list that is read page by page.
 *
 * @param list the page that comes after an item. One with fewer items than `size` is the last.
 */
export async function forEachPage<T>(
  size: number,
  list: (after: T | undefined) => Promise<T[]>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const failures = new Failures();
  let page: T[];
  let after: T | undefined;
  do {
    page = await list(after);
    await forEachItem(page, work).catch(failures.add);
    after = page.at(-1);
  } while (page.length === size);
  failures.throwFirst();
}
