import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const EVERY_BYTES = 4 * 1024 * 1024;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: { type: "minor" }) => void;

let streamed = 0;

/**
 * Bytes that stream through us, looked at in passing so that their buffers are let go of in time. They lie
 * outside of V8's heap, and V8 does not look for them before there are 64 MB: a large file would take that
 * much more memory than it needs. Collecting the young ones takes a millisecond.
 */
export async function* lettingGo(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk;
    streamed += chunk.length;
    if (streamed < EVERY_BYTES) continue;
    streamed = 0;
    collect({ type: "minor" });
  }
}
