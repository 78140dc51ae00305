/** Replaces src/pause (by jest.mock): records pauses in milliseconds and skips them. */
export const pauses: number[] = [];

export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  pauses.push(ms);
}
