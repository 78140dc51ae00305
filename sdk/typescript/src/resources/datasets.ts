import type { CreateOptions } from "../options.ts";
import type { OnProgress } from "../progress.ts";
import type { Dataset } from "../schema.ts";
import { contentOf, type DatasetSource, sha256Of, Upload } from "../upload.ts";
import { Resource } from "./resource.ts";

/** Time-out for the response: after the last byte, the server counts and stores the rows. */
const ANSWER_MS = 300_000;

export interface UploadOptions extends CreateOptions {
  /** Default: the file name's suffix. Required if that is not jsonl, ndjson, csv or parquet. */
  format?: "jsonl" | "csv" | "parquet" | undefined;
  /** Called for each sent chunk. In a browser, called only once, at the end. */
  onProgress?: OnProgress | undefined;
}

/** `client.datasets`. */
export class Datasets extends Resource {
  /**
   * Uploads a table of any size: JSON lines, CSV with a header, or parquet.
   *
   * The table is sent with a checksum, and stored only once despite retries. Rejects with
   * BadRequestError if a row is invalid.
   */
  async upload(
    source: DatasetSource,
    name?: string | null,
    { format, onProgress, ...options }: UploadOptions = {},
  ): Promise<Dataset> {
    const content = await contentOf(source, name ?? undefined, format);
    const { blob, name: path } = content;
    const upload = new Upload(blob, (done_bytes) =>
      onProgress?.({ path, done_bytes, total_bytes: blob.size }),
    );
    const dataset = await this.transport.json<Dataset>(
      {
        method: "POST",
        path: "/api/datasets",
        query: { name: content.name },
        body: upload,
        headers: {
          "Content-Type": content.contentType,
          "X-Checksum-Sha256": await sha256Of(blob, options.signal),
        },
        creates: true,
        minTimeoutMs: ANSWER_MS,
      },
      options,
    );
    upload.end();
    return dataset;
  }
}
