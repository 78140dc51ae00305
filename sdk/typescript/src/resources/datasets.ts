import type { CreateOptions } from "../options.ts";
import type { OnProgress } from "../progress.ts";
import type { Dataset } from "../schema.ts";
import { contentOf, type DatasetSource, sha256Of, Upload } from "../upload.ts";
import { Resource } from "./resource.ts";

/** After the last byte the rows are counted, and written to the store. */
const ANSWER_MS = 300_000;

export interface UploadOptions extends CreateOptions {
  /** Where the name of the file doesn't say. */
  format?: "jsonl" | "csv" | "parquet" | undefined;
  /** In a browser told once, at the end. */
  onProgress?: OnProgress | undefined;
}

/** `client.datasets`. */
export class Datasets extends Resource {
  /**
   * Uploads a table: JSON lines, CSV with a header, or parquet, of any size.
   *
   * It is sent with its checksum, and stored once, however often the connection breaks. Rejects with
   * BadRequestError where a row is wrong.
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
        answerMs: ANSWER_MS,
      },
      options,
    );
    upload.end();
    return dataset;
  }
}
