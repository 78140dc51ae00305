/** The pauses that were made, in milliseconds; none takes time. For jest.mock of src/pause. */
export const pauses: number[] = [];

export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  pauses.push(ms);
}
