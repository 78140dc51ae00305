import { disk } from "#disk";
import { platform } from "#platform";
import { ForgeError } from "./errors.ts";

/** A path (in Node), or the content itself; of a stream all is read before anything is sent. */
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

/** Throws ForgeError for what can't be sent. */
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
  // To send it again, or to know its checksum beforehand, it must be possible to read it twice.
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

/** Slower than this, an upload that nothing tells of is taken for dead: 100 kB a second. */
const SLOWEST_BYTES_PER_MS = 100;

/** A body that is read anew each time that it is sent. */
export class Upload {
  readonly #blob: Blob;
  readonly #onBytes: (done: number) => void;

  constructor(blob: Blob, onBytes: (done: number) => void) {
    this.#blob = blob;
    this.#onBytes = onBytes;
  }

  /** How long it may take, where nothing tells how far it is; 0 where each piece tells. */
  get unseenMs(): number {
    return platform.streamsUploads ? 0 : this.#blob.size / SLOWEST_BYTES_PER_MS;
  }

  /** What fetch is given beside the headers; `onAlive` is told of each piece that has gone. */
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

  /** It has arrived. */
  end(): void {
    if (!platform.streamsUploads) this.#onBytes(this.#blob.size);
  }
}
