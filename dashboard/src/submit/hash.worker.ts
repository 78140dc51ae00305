import { platform } from "#platform";

/** Computes the SHA-256 of a file in chunks, because a dataset may be larger than memory. */

const page = globalThis as unknown as {
  onmessage: (event: MessageEvent<Blob>) => void;
  postMessage(message: HashMessage): void;
};

export type HashMessage = { done: number } | { hex: string } | { problem: string };

/** Number of bytes between two progress reports. */
const STEP_BYTES = 4_000_000;

page.onmessage = async ({ data: file }) => {
  try {
    const hash = platform.createHash();
    const reader = file.stream().getReader();
    let done = 0;
    let reported = 0;
    for (;;) {
      const { done: isOver, value } = await reader.read();
      if (isOver) break;
      hash.update(value);
      done += value.length;
      if (done - reported < STEP_BYTES) continue;
      reported = done;
      page.postMessage({ done });
    }
    page.postMessage({ hex: hash.hex() });
  } catch (error) {
    page.postMessage({ problem: error instanceof Error ? error.message : String(error) });
  }
};
