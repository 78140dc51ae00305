/** Records pauses in milliseconds and skips them. For jest.mock of src/pause. */
export const pauses: number[] = [];

export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  pauses.push(ms);
}
