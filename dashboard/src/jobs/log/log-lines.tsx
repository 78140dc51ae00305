import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { ansiSpans } from "./ansi";
import styles from "./log-lines.module.css";
import type { LogState } from "./protocol";
import { patternOf } from "./search-lines";
import type { LogClient } from "./use-log";

const LINE_PX = 18;
/**
 * The maximum height of the scrolled element. Browsers limit heights to 17 to 33 million px. If a
 * log has too many lines for this maximum, scrolling by one pixel moves the lines by more than one
 * pixel.
 */
const MAX_PX = 14_400_000;
const OVERSCAN = 12;
/** The log's frame has room for at least this many lines, even if the log is shorter. */
const MIN_LINES = 6;
/** Width of the line number, in characters. */
const GUTTER = 9;

export interface LogPosition {
  /** Scrolls a line to the middle. */
  show: (line: number) => void;
  toTop: () => void;
  toEnd: () => void;
}

interface Props {
  client: LogClient;
  state: LogState;
  query: string;
  /** If given, only these lines are shown. */
  only: Uint32Array | undefined;
  marked: number | undefined;
  isFollowing: boolean;
  onScrolledUp: () => void;
  onMark: (line: number) => void;
  position: RefObject<LogPosition | null>;
}

/** Shows a log of any length. Decodes and renders only the visible lines and a few around them. */
export function LogLines(props: Props) {
  const { client, state, only, isFollowing, onScrolledUp, position } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const count = only ? only.length : state.lines;
  const full = Math.min(count * LINE_PX, MAX_PX);
  const visible = Math.ceil(view.height / LINE_PX);
  const range = Math.max(1, full - view.height);
  const first = Math.max(
    0,
    (Math.min(view.top, range) / range) * Math.max(0, count - view.height / LINE_PX),
  );
  const from = Math.max(0, Math.floor(first) - OVERSCAN);
  const to = Math.min(count, Math.ceil(first) + visible + OVERSCAN);
  const lines = useLines(client, state, only, from, to);
  const topOf = (row: number): number => (row / Math.max(1, count - visible)) * range;

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the log has grown
  useLayoutEffect(() => {
    if (isFollowing && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  }, [isFollowing, count, full]);
  position.current = {
    show: (line) => {
      const row = only ? only.indexOf(line) : line;
      if (row >= 0) scroller.current?.scrollTo({ top: topOf(Math.max(0, row - visible / 2)) });
    },
    toTop: () => scroller.current?.scrollTo({ top: 0 }),
    toEnd: () => scroller.current?.scrollTo({ top: full }),
  };
  const onScroll = (): void => {
    const element = scroller.current;
    if (!element) return;
    if (element.scrollTop < view.top && isFollowing) onScrolledUp();
    setView({ top: element.scrollTop, height: element.clientHeight });
  };
  const rows = [];
  for (let row = from; row < to; row++) {
    const line = only ? (only[row] ?? 0) : row;
    rows.push(
      <Line
        key={line}
        {...props}
        line={line}
        text={lines.get(line)}
        top={(row - first) * LINE_PX}
      />,
    );
  }
  return (
    <div
      ref={scroller}
      className={styles.scroller}
      style={{ maxHeight: Math.max(full, MIN_LINES * LINE_PX) + 18 }}
      onScroll={onScroll}
      tabIndex={0}
      role="log"
      aria-label="Log"
      aria-live="off"
    >
      <div style={{ height: full, minWidth: `${Math.min(state.longest, 4_000) + GUTTER}ch` }}>
        <div className={styles.window} style={{ height: Math.min(view.height, full) }}>
          {rows}
        </div>
      </div>
    </div>
  );
}

function Line({
  line,
  text,
  top,
  state,
  query,
  marked,
  onMark,
}: Pick<Props, "state" | "query" | "marked" | "onMark"> & {
  line: number;
  text: string | undefined;
  top: number;
}) {
  return (
    <div
      className={styles.line}
      data-marked={marked === line + 1 || undefined}
      style={{ translate: `0 ${top}px` }}
    >
      {state.isTail ? (
        <span className={styles.number} />
      ) : (
        <button
          type="button"
          className={styles.number}
          tabIndex={-1}
          onClick={() => onMark(line + 1)}
        >
          {line + 1}
        </button>
      )}
      <span className={styles.text}>
        {text === undefined ? "…" : <Spans text={text} query={query} />}
      </span>
    </div>
  );
}

function Spans({ text, query }: { text: string; query: string }) {
  return ansiSpans(text).map((span, at) => (
    <span key={at} className={classOf(span.style)}>
      {highlighted(span.text, query)}
    </span>
  ));
}

const classOf = (style: string): string | undefined =>
  style === ""
    ? undefined
    : style
        .split(" ")
        .map((name) => styles[name])
        .join(" ");

function highlighted(text: string, query: string): React.ReactNode {
  if (query === "") return text;
  const parts: React.ReactNode[] = [];
  let at = 0;
  for (const [start, end] of matches(text, query)) {
    parts.push(text.slice(at, start), <mark key={start}>{text.slice(start, end)}</mark>);
    at = end;
  }
  return [...parts, text.slice(at)];
}

function* matches(text: string, query: string): Generator<[number, number]> {
  try {
    const pattern = patternOf(query);
    if (pattern) {
      for (const found of text.matchAll(new RegExp(pattern.source, `${pattern.flags}g`))) {
        if (found[0]) yield [found.index, found.index + found[0].length];
      }
      return;
    }
  } catch {
    return;
  }
  const [lower, needle] = [text.toLowerCase(), query.toLowerCase()];
  for (let at = lower.indexOf(needle); at !== -1; at = lower.indexOf(needle, at + needle.length)) {
    yield [at, at + needle.length];
  }
}

/** The texts of the rows `from` (inclusive) to `to` (exclusive), by their line index in the log. */
function useLines(
  client: LogClient,
  state: LogState,
  only: Uint32Array | undefined,
  from: number,
  to: number,
): ReadonlyMap<number, string> {
  const [lines, setLines] = useState<ReadonlyMap<number, string>>(new Map());
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the log has grown
  useEffect(() => {
    let isCurrent = true;
    const ranges = only
      ? [...only.subarray(from, to)].map((line) => [line, line + 1] as const)
      : [[from, to] as const];
    void Promise.all(ranges.map(([start, end]) => client.lines(start, end))).then((answers) => {
      if (!isCurrent) return;
      const entries = answers.flatMap((answer) =>
        answer.lines.map((text, at) => [answer.from + at, text] as const),
      );
      setLines(new Map(entries));
    });
    return () => {
      isCurrent = false;
    };
  }, [client, state.lines, state.isTail, state.loaded, only, from, to]);
  return lines;
}
