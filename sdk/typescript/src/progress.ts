export interface Progress {
  /** The file that is being transferred, or that was already correct on the disk. */
  path: string;
  done_bytes: number;
  total_bytes: number;
}

export type OnProgress = (progress: Progress) => void;

/** Counts and reports the bytes of a transfer of one or several files. */
export class Counter {
  #done = 0;
  readonly #total: number;
  readonly #onProgress: OnProgress | undefined;

  constructor(total: number, onProgress?: OnProgress) {
    this.#total = total;
    this.#onProgress = onProgress;
  }

  advance(path: string, bytes: number): void {
    this.#done += bytes;
    this.#onProgress?.({ path, done_bytes: this.#done, total_bytes: this.#total });
  }

  /** Yields the chunks. Reports the progress of each chunk after the caller has consumed it. */
  async *count(
    path: string,
    chunks: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of chunks) {
      yield chunk;
      this.advance(path, chunk.length);
    }
  }
}
