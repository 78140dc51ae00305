import { platform } from "#platform";

/** SHA-256 of a file, piece by piece: a dataset may be larger than the memory. */
const page = globalThis as unknown as {
  onmessage: (event: MessageEvent<Blob>) => void;
  postMessage(message: HashMessage): void;
};

export type HashMessage = { done: number } | { hex: string } | { problem: string };

/** The page is told no more often than every so many bytes. */
const STEP_BYTES = 4_000_000;

page.onmessage = async ({ data: file }) => {
  try {
    const hash = platform.createHash();
    const reader = file.stream().getReader();
    let done = 0;
    let told = 0;
    for (;;) {
      const { done: isOver, value } = await reader.read();
      if (isOver) break;
      hash.update(value);
      done += value.length;
      if (done - told < STEP_BYTES) continue;
      told = done;
      page.postMessage({ done });
    }
    page.postMessage({ hex: hash.hex() });
  } catch (error) {
    page.postMessage({ problem: error instanceof Error ? error.message : String(error) });
  }
};
