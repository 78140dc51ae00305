/** A call that waits until a batch with its item has run. */
export interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result | Promise<Result>) => void;
  reject: (error: unknown) => void;
}

/**
 * Returns the results of a batch, in the order of its items. If a result is a promise, only that
 * item's call waits for the promise, and fails if the promise rejects.
 */
export type BatchWork<Item, Result> = (items: Item[]) => Promise<(Result | Promise<Result>)[]>;

/**
 * Runs `work` on the items of a batch, and resolves each waiting call with its result. If `work`
 * fails, `runBatch` throws the error and leaves the waiting calls pending. The function that uses
 * `runBatch` must then reject the waiting calls with `rejectAll`.
 */
export async function runBatch<Item, Result>(
  batch: Waiting<Item, Result>[],
  work: BatchWork<Item, Result>,
): Promise<void> {
  const results = await work(batch.map(({ item }) => item));
  for (const [n, { resolve }] of batch.entries()) resolve(results[n] as Result | Promise<Result>);
}

export function rejectAll<Item, Result>(batch: Waiting<Item, Result>[], error: unknown): void {
  for (const { reject } of batch) reject(error);
}
