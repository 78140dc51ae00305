import { ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get } from "./request.ts";
import type { Transport } from "./transport.ts";

const BEYOND = 416;

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
        retryPolicy.renew();
        yield chunk;
      }
      return;
    } catch (error) {
      await transport.pause(error, retryPolicy, options.signal);
    }
  }
}

/** The bytes from an offset, over one connection. May reject with TransientFailure. */
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
    ...(range && { alsoStatus: BEYOND }),
  };
  const { response, chunks, close } = await transport.open(request, options);
  try {
    if (response.status === BEYOND) return; // all bytes had arrived when the connection was lost
    const start = startOf(response, path);
    if (start > offset) {
      throw new ForgeHTTPError(`${path}: the response starts after the given offset`);
    }
    // A server without support for Range starts at the beginning: skip what was yielded before.
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

/** The offset of the first byte of a partial response. */
function startOf(response: Response, path: string): number {
  if (response.status !== 206) return 0;
  const start = /^bytes (\d+)-/.exec(response.headers.get("content-range") ?? "")?.[1];
  if (start) return Number(start);
  throw new ForgeHTTPError(`${path}: a partial response has no valid Content-Range`);
}
