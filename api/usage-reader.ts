import type { IncomingHttpHeaders } from "node:http";
import { Transform, type TransformCallback } from "node:stream";

/** OpenAI's protocol has the usage at the end of an answer: of a stream in its last event, where the caller asks for it. */
const TAIL_BYTES = 4096;
/** More in one answer is no number of tokens. */
const MAX_TOKENS = 1e9;

/** Passes an answer on as it is, and keeps its end, to read how many tokens the model's server says it took. */
export class UsageReader extends Transform {
  private tail: Buffer = Buffer.alloc(0);
  private readonly isRead: boolean;

  constructor({ "content-type": type = "", "content-encoding": encoding }: IncomingHttpHeaders) {
    super();
    this.isRead = !encoding && /^(application\/json|text\/event-stream)\b/.test(type);
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    if (this.isRead) {
      const end = chunk.subarray(-TAIL_BYTES);
      // A copy: what is kept must not hold the chunk's whole memory.
      this.tail = Buffer.concat([this.tail, end]).subarray(-TAIL_BYTES);
    }
    done(null, chunk);
  }

  tokens(): { input?: number | undefined; output?: number | undefined } {
    const text = this.tail.toString("utf8");
    return { input: last(text, "prompt_tokens"), output: last(text, "completion_tokens") };
  }
}

/** In what a model writes the quotes of JSON are escaped, so it can't be mistaken for this. */
function last(text: string, name: string): number | undefined {
  const found = [...text.matchAll(new RegExp(`(?<!\\\\)"${name}"\\s*:\\s*(\\d{1,10})\\b`, "g"))].at(
    -1,
  );
  const tokens = Number(found?.[1]);
  return tokens <= MAX_TOKENS ? tokens : undefined;
}
