import { LogSource } from "./log-source";
import type { FromWorker, LogState, ToWorker } from "./protocol";
import { searchLines } from "./search-lines";

/** Lines are cut to this many characters before they are sent to the page, but not in downloads. */
const MAX_SHOWN = 4_000;
/** The minimum time between two messages to the page while a log streams in. */
const NOTIFY_MS = 60;

const page = globalThis as unknown as {
  onmessage: (event: MessageEvent<ToWorker>) => void;
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
};

let source: LogSource | undefined;
let latest: LogState | undefined;
let isScheduled = false;

function notify(state: LogState): void {
  latest = state;
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => {
    isScheduled = false;
    if (latest) page.postMessage({ type: "state", state: latest });
  }, NOTIFY_MS);
}

page.onmessage = ({ data }) => {
  switch (data.type) {
    case "open":
      source = new LogSource(data.url, data.apiKey, notify);
      return;
    case "live":
      source?.setLive(data.isLive);
      return;
    case "lines":
      page.postMessage({
        type: "lines",
        id: data.id,
        from: data.from,
        lines: linesOf(data.from, data.to),
      });
      return;
    case "search": {
      if (!source) return;
      const found = searchLines(source.index, data.query);
      page.postMessage({ type: "found", id: data.id, ...found }, [found.lines.buffer]);
      return;
    }
    case "bytes": {
      const bytes = source?.index.copy() ?? new Uint8Array();
      page.postMessage({ type: "bytes", id: data.id, bytes }, [bytes.buffer]);
    }
  }
};

function linesOf(from: number, to: number): string[] {
  if (!source) return [];
  const { index } = source;
  const lines: string[] = [];
  for (let at = from; at < Math.min(to, index.lines); at++) lines.push(shown(index.line(at)));
  return lines;
}

/** Like a terminal, shows only the last state of a line that a progress bar overwrites (`\r`). */
const shown = (line: string): string => cut(line.slice(line.lastIndexOf("\r") + 1));

const cut = (line: string): string =>
  line.length <= MAX_SHOWN
    ? line
    : `${line.slice(0, MAX_SHOWN)} … ${line.length - MAX_SHOWN} more characters`;
