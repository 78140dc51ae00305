/** A call that waits for its batch. */
export interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/** Runs a batch and resolves each of its calls. If `work` throws, no call was resolved. */
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
