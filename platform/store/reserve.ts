import type { ObjectStore } from "./object-store";

/** Free space is checked when a body begins, and again after each interval of this many bytes. */
const CHECK_BYTES = 16 * 1024 * 1024;

/**
 * Passes a body through while the store keeps its reserve of free space. The reserve is for bills,
 * manifests, logs and results, which must be written even when uploads are refused. Stores that
 * don't know their free space have no reserve.
 *
 * @param refuse is called with the number of free bytes. Returns the error that ends the body.
 */
export async function* withinReserve(
  store: ObjectStore,
  reserveBytes: number,
  body: AsyncIterable<Buffer>,
  refuse: (freeBytes: number) => Error,
): AsyncGenerator<Buffer> {
  let unchecked = CHECK_BYTES;
  for await (const chunk of body) {
    unchecked += chunk.length;
    if (unchecked >= CHECK_BYTES) {
      const free = (await store.freeBytes?.()) ?? Number.POSITIVE_INFINITY;
      if (free - CHECK_BYTES < reserveBytes) throw refuse(free);
      unchecked = 0;
    }
    yield chunk;
  }
}
