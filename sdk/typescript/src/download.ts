import { ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get, RANGE_NOT_SATISFIABLE } from "./request.ts";
import type { Transport } from "./transport.ts";

/** Yields the bytes of an immutable file. Resumes after a lost connection. */
export async function* download(
  transport: Transport,
  path: string,
  options: RequestOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const retryPolicy = transport.retryPolicy(options);
  let given = 0;
  for (;;) {
    try {
      for await (const chunk of rest(transport, path, given, options)) {
        given += chunk.length;
        retryPolicy.reset();
        yield chunk;
      }
      return;
    } catch (error) {
      await transport.pause(error, retryPolicy, options.signal);
    }
  }
}

/** Yields the bytes from an offset, over one connection. May reject with TransientFailure. */
async function* rest(
  transport: Transport,
  path: string,
  offset: number,
  options: RequestOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  // Compression would change the offsets.
  const headers = { Accept: "*/*", "Accept-Encoding": "identity" };
  const range = offset > 0 ? { Range: `bytes=${offset}-` } : undefined;
  const request = {
    ...get(path),
    headers: { ...headers, ...range },
    ...(range && { otherStatus: RANGE_NOT_SATISFIABLE }),
  };
  const { response, chunks, close } = await transport.open(request, options);
  try {
    // The previous connection was lost after the last byte had arrived.
    if (response.status === RANGE_NOT_SATISFIABLE) return;
    const start = startOf(response, path);
    if (start > offset) {
      throw new ForgeHTTPError(`${path}: the response starts after the given offset`);
    }
    // A server without Range support starts at the beginning. Skip the bytes that were already
    // yielded.
    let skip = offset - start;
    for await (const chunk of chunks) {
      const fresh = chunk.subarray(skip);
      skip = Math.max(0, skip - chunk.length);
      if (fresh.length > 0) yield fresh;
    }
  } finally {
    close();
  }
}

/** Returns the offset of the response's first byte: 0 if the response is not partial. */
function startOf(response: Response, path: string): number {
  if (response.status !== 206) return 0;
  const start = /^bytes (\d+)-/.exec(response.headers.get("content-range") ?? "")?.[1];
  if (start) return Number(start);
  throw new ForgeHTTPError(`${path}: a partial response has no valid Content-Range`);
}
