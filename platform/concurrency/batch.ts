/** A call that waits until a batch with its item has run. */
export interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/**
 * Runs `work` on the items of a batch, and resolves each call with its result. If `work` throws,
 * throws its error and resolves no call: the caller must reject them (`rejectAll`).
 */
export async function answer<Item, Result>(
  batch: Waiting<Item, Result>[],
  work: (items: Item[]) => Promise<Result[]>,
): Promise<void> {
  const results = await work(batch.map(({ item }) => item));
  for (const [n, { resolve }] of batch.entries()) resolve(results[n] as Result);
}

export function rejectAll<Item, Result>(batch: Waiting<Item, Result>[], error: unknown): void {
  for (const { reject } of batch) reject(error);
}
