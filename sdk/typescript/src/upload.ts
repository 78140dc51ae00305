import { disk } from "#disk";
import { platform } from "#platform";
import { ForgeError } from "./errors.ts";

/** A path (in Node) or the content. A stream is read completely before it is sent. */
export type DatasetSource = string | Blob | Uint8Array | ArrayBuffer | ReadableStream<Uint8Array>;

const TYPES: Record<string, string> = {
  parquet: "application/vnd.apache.parquet",
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
  csv: "text/csv",
};

export interface DatasetContent {
  blob: Blob;
  name: string;
  contentType: string;
}

/**
 * Determines the content, name and type of a source.
 *
 * Rejects with ForgeError if the source can't be sent.
 */
export async function contentOf(
  source: DatasetSource,
  name: string | undefined,
  format: string | undefined,
): Promise<DatasetContent> {
  const { blob, filename } = await fileOf(source);
  const suffix = (format ?? /\.([^.]*)$/.exec(filename)?.[1] ?? "").toLowerCase();
  const contentType = TYPES[suffix];
  if (!contentType) {
    throw new ForgeError(`format must be jsonl, csv or parquet, not ${JSON.stringify(suffix)}`);
  }
  return { blob, name: name || filename.replace(/\.[^.]*$/, "") || "dataset", contentType };
}

async function fileOf(source: DatasetSource): Promise<{ blob: Blob; filename: string }> {
  if (typeof source === "string") return await disk.open(source);
  if (source instanceof Blob) {
    return { blob: source, filename: source instanceof File ? source.name : "" };
  }
  // The content must be readable twice: for the checksum, and for retries.
  if (source instanceof ReadableStream) {
    return { blob: await new Response(source).blob(), filename: "" };
  }
  return { blob: new Blob([source as BlobPart]), filename: "" };
}

export async function sha256Of(blob: Blob, signal?: AbortSignal): Promise<string> {
  const hash = platform.createHash();
  const reader = blob.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    signal?.throwIfAborted();
    if (done) return hash.hex();
    hash.update(value);
  }
}

/** Minimum speed of an upload without progress events (100 kB/s). Slower uploads time out. */
const SLOWEST_BYTES_PER_MS = 100;

/** A request body that is read again for each try. */
export class Upload {
  readonly #blob: Blob;
  readonly #onBytes: (done: number) => void;

  constructor(blob: Blob, onBytes: (done: number) => void) {
    this.#blob = blob;
    this.#onBytes = onBytes;
  }

  /** If there are no progress events, the time allowed for sending the body, in ms. Otherwise 0. */
  get extraTimeoutMs(): number {
    return platform.streamsUploads ? 0 : this.#blob.size / SLOWEST_BYTES_PER_MS;
  }

  /** Returns the body and its options for fetch. `onAlive` is called for each sent chunk. */
  init(onAlive: () => void): { headers: Record<string, string>; body: BodyInit; duplex?: "half" } {
    if (!platform.streamsUploads) return { headers: {}, body: this.#blob };
    let done = 0;
    const count = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        controller.enqueue(chunk);
        done += chunk.length;
        onAlive();
        this.#onBytes(done);
      },
    });
    return {
      headers: { "Content-Length": String(this.#blob.size) },
      body: this.#blob.stream().pipeThrough(count),
      duplex: "half",
    };
  }

  /** Reports the upload as complete, if there were no progress events. */
  end(): void {
    if (!platform.streamsUploads) this.#onBytes(this.#blob.size);
  }
}
