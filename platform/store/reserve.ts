import type { ObjectStore } from "./object-store";

/** Free space is looked at when a body begins, and again after so many bytes of it. */
const LOOK_BYTES = 16 * 1024 * 1024;

/**
 * Passes a body on as long as the store keeps its reserve of free space: bills, manifests, logs and results
 * are still written when uploads are refused. Stores that don't know what is free have none.
 *
 * @param refuse makes the error that ends the body; told how much is free, in bytes.
 */
export async function* withinReserve(
  store: ObjectStore,
  reserveBytes: number,
  body: AsyncIterable<Buffer>,
  refuse: (freeBytes: number) => Error,
): AsyncGenerator<Buffer> {
  let unseen = LOOK_BYTES;
  for await (const chunk of body) {
    unseen += chunk.length;
    if (unseen >= LOOK_BYTES) {
      const free = (await store.freeBytes?.()) ?? Number.POSITIVE_INFINITY;
      if (free - LOOK_BYTES < reserveBytes) throw refuse(free);
      unseen = 0;
    }
    yield chunk;
  }
}
