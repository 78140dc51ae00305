import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const EVERY_BYTES = 4 * 1024 * 1024;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: { type: "minor" }) => void;

let streamed = 0;

/**
 * Passes chunks through, and runs a minor garbage collection every EVERY_BYTES to free their
 * buffers early. The buffers are outside of V8's heap. V8 itself frees them only after 64 MB, so a
 * large file would use that much memory. A minor collection takes about a millisecond.
 */
export async function* releasingBuffers(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk;
    streamed += chunk.length;
    if (streamed < EVERY_BYTES) continue;
    streamed = 0;
    collect({ type: "minor" });
  }
}
