/** How many items are processed at a time: several, because each often waits for the store. */
const AT_ONCE = 8;

/** Runs functions in order. Failures don't stop the rest, and are thrown at the end. */
export async function runEach(works: (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const work of works) await work().catch((error: unknown) => failures.push(error));
  throwAll(failures);
}

/**
 * Runs `work` for each item of a paginated list, several at once. Stops after a page on which every
 * item failed, because a shared dependency is probably unavailable. The next run continues after
 * that page, so that items that always fail do not block the others. After the last page, the next
 * run begins at the first.
 */
export class PagedWork<T> {
  private after: T | undefined;

  /**
   * @param size items of a page. A page with fewer items is the last one.
   * @param list returns the page after an item; the first page for undefined.
   */
  constructor(
    private readonly size: number,
    private readonly list: (after: T | undefined) => Promise<T[]>,
    private readonly work: (item: T) => Promise<unknown>,
  ) {}

  /** Failures are thrown at the end. */
  async run(): Promise<void> {
    const failures: unknown[] = [];
    for (;;) {
      const page = await this.list(this.after);
      const failed = await failuresOf(page, this.work);
      failures.push(...failed);
      this.after = page.length < this.size ? undefined : page.at(-1);
      if (this.after === undefined || failed.length === page.length) break;
    }
    throwAll(failures);
  }
}

async function failuresOf<T>(items: T[], work: (item: T) => Promise<unknown>): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    const done = await Promise.allSettled(items.slice(at, at + AT_ONCE).map(work));
    failures.push(...done.flatMap((one) => (one.status === "rejected" ? [one.reason] : [])));
  }
  return failures;
}

/** Throws one failure unchanged, several as an AggregateError with the first one's message. */
function throwAll(failures: unknown[]): void {
  const [first, ...more] = failures;
  if (more.length > 0) throw new AggregateError(failures, `${failures.length} failed: ${first}`);
  if (failures.length > 0) throw first;
}
