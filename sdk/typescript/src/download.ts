import { ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get } from "./request.ts";
import type { Transport } from "./transport.ts";

const BEYOND = 416;

/** The bytes of what does not change; a broken connection is taken up where it broke. */
export async function* download(
  transport: Transport,
  path: string,
  options: RequestOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const patience = transport.patience(options);
  let given = 0;
  for (;;) {
    try {
      for await (const chunk of rest(transport, path, given, options)) {
        given += chunk.length;
        patience.renew();
        yield chunk;
      }
      return;
    } catch (error) {
      await transport.pause(error, patience, options.signal);
    }
  }
}

/** One connection's part of them, from an offset on. Rejects with Passing too. */
async function* rest(
  transport: Transport,
  path: string,
  offset: number,
  options: RequestOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  // Compressed on the way, offsets would be those of something else.
  const headers = { Accept: "*/*", "Accept-Encoding": "identity" };
  const range = offset > 0 ? { Range: `bytes=${offset}-` } : undefined;
  const request = {
    ...get(path),
    headers: { ...headers, ...range },
    ...(range && { alsoStatus: BEYOND }),
  };
  const { response, chunks, close } = await transport.open(request, options);
  try {
    if (response.status === BEYOND) return; // it broke off after the last byte
    const start = startOf(response, path);
    if (start > offset) {
      throw new ForgeHTTPError(`${path}: the answer begins beyond what was asked for`);
    }
    // Who does not know Range begins at the beginning.
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

/** Of a partial answer, the offset of its first byte. */
function startOf(response: Response, path: string): number {
  if (response.status !== 206) return 0;
  const start = /^bytes (\d+)-/.exec(response.headers.get("content-range") ?? "")?.[1];
  if (start) return Number(start);
  throw new ForgeHTTPError(`${path}: a partial answer does not say which part it is`);
}
