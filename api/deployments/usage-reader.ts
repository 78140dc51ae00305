import type { IncomingHttpHeaders } from "node:http";
import { Transform, type TransformCallback } from "node:stream";

/**
 * Number of bytes to keep from the end of a response. In OpenAI's protocol, the token counts
 * (`usage`) are at the end; a stream has them only if the caller requests them.
 */
const TAIL_BYTES = 4096;
/** The largest plausible token count of one response. A larger value is ignored. */
const MAX_TOKENS = 1e9;

/** Passes a response through, and reads the token counts that the model's server reports. */
export class UsageReader extends Transform {
  private tail: Buffer = Buffer.alloc(0);
  private readonly hasUsage: boolean;

  constructor({ "content-type": type = "", "content-encoding": encoding }: IncomingHttpHeaders) {
    super();
    this.hasUsage = !encoding && /^(application\/json|text\/event-stream)\b/.test(type);
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    if (this.hasUsage) {
      const end = chunk.subarray(-TAIL_BYTES);
      // Buffer.concat copies, so the tail does not keep the whole chunk in memory.
      this.tail = Buffer.concat([this.tail, end]).subarray(-TAIL_BYTES);
    }
    done(null, chunk);
  }

  tokens(): { input?: number | undefined; output?: number | undefined } {
    const text = this.tail.toString("utf8");
    return { input: last(text, "prompt_tokens"), output: last(text, "completion_tokens") };
  }
}

/** The last value of a field. Text that the model wrote never matches: its quotes are escaped. */
function last(text: string, name: string): number | undefined {
  const found = [...text.matchAll(new RegExp(`(?<!\\\\)"${name}"\\s*:\\s*(\\d{1,10})\\b`, "g"))].at(
    -1,
  );
  const tokens = Number(found?.[1]);
  return tokens <= MAX_TOKENS ? tokens : undefined;
}
