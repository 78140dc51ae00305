import { Batcher } from "../../platform/concurrency/batcher";

/**
 * Delivered entries wait this long for their removal. Most short jobs complete within this time,
 * and the completion of a job removes the job's entries, so that nothing is left to remove. The
 * time is much shorter than a lease, so no other process delivers the entries again.
 */
const REMOVE_AFTER_MS = 200;
const MAX_AT_ONCE = 500;

/**
 * Removes delivered entries in batches, in the background. If a removal fails, the entry is
 * delivered again.
 */
export class Removals<Entry> {
  private readonly batcher: Batcher<Entry, undefined>;
  private readonly pending = new Set<Promise<void>>();

  constructor(
    remove: (entries: Entry[]) => Promise<void>,
    private readonly onError: (error: unknown) => void,
  ) {
    const work = async (entries: Entry[]): Promise<undefined[]> => {
      await remove(entries);
      return entries.map(() => undefined);
    };
    this.batcher = new Batcher(work, REMOVE_AFTER_MS, MAX_AT_ONCE);
  }

  add(entry: Entry): void {
    const done: Promise<void> = this.batcher
      .add(entry)
      .catch(this.onError)
      .finally(() => this.pending.delete(done));
    this.pending.add(done);
  }

  async untilDone(): Promise<void> {
    await Promise.all(this.pending);
  }
}
