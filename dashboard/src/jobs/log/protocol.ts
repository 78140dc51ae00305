import type { FoundLines } from "./search-lines";

/** Messages from the page to the log's web worker. */
export type ToWorker =
  | { type: "open"; url: string; apiKey: string }
  /** Whether to keep reading: the job has not ended, and the page is visible. */
  | { type: "live"; isLive: boolean }
  | { type: "lines"; id: number; from: number; to: number }
  | { type: "search"; id: number; query: string }
  | { type: "bytes"; id: number };

export interface LogState {
  /** The number of lines that can be requested. */
  lines: number;
  /** Loaded bytes and total bytes. */
  loaded: number;
  total: number;
  /** Only the end is loaded so far: line 0 is not the log's first line. */
  isTail: boolean;
  /** Length of the longest line so far, in bytes: about its length in characters. */
  longest: number;
  error: string | null;
}

/** Messages from the web worker to the page. */
export type FromWorker =
  | { type: "state"; state: LogState }
  | { type: "lines"; id: number; from: number; lines: string[] }
  | ({ type: "found"; id: number } & FoundLines)
  | { type: "bytes"; id: number; bytes: Uint8Array<ArrayBuffer> };
