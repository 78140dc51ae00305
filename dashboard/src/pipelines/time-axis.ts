/** The width of a shortened idle period, as a fraction of the total busy time. */
const BREAK_SHARE = 0.05;
/**
 * An idle period is shortened only if it is longer than MIN_BREAK_MS and also longer than
 * MIN_BREAK_SHARE times the busy time.
 */
const MIN_BREAK_MS = 20_000;
const MIN_BREAK_SHARE = 0.3;
const MAX_TICKS = 6;

interface Interval {
  startMs: number;
  endMs: number;
}

export interface TimeAxis {
  /** The position of a moment: 0 is the start, 1 the end. */
  shareOf: (ms: number) => number;
  /** Idle periods that are drawn shorter than they are. */
  breaks: Interval[];
  /** Moments to mark, in ms since the start. */
  ticks: number[];
}

/** Lays out spans from the first start to the last end, with long idle periods shortened. */
export function timeAxis(spans: readonly Interval[]): TimeAxis {
  const busy = union(spans);
  const busyMs = Math.max(1, sum(busy.map(lengthOf)));
  const breaks = busy.slice(1).flatMap((interval, at) => {
    const idle = { startMs: busy[at]?.endMs ?? 0, endMs: interval.startMs };
    const isLong = lengthOf(idle) > Math.max(MIN_BREAK_MS, busyMs * MIN_BREAK_SHARE);
    return isLong ? [idle] : [];
  });
  const fromMs = busy[0]?.startMs ?? 0;
  const toMs = busy.at(-1)?.endMs ?? 1;
  const breakMs = busyMs * BREAK_SHARE;
  const drawn = (ms: number): number => {
    const cut = breaks.map((idle) => {
      const passed = Math.min(Math.max(ms - idle.startMs, 0), lengthOf(idle));
      return passed - (passed / lengthOf(idle)) * breakMs;
    });
    return ms - fromMs - sum(cut);
  };
  const lengthMs = Math.max(1, drawn(toMs));
  return {
    shareOf: (ms) => Math.min(1, Math.max(0, drawn(ms) / lengthMs)),
    breaks,
    // No ticks after the start of the first shortened idle period: from there on, the distance from
    // the start of the axis is no longer proportional to the time.
    ticks: ticksOf(lengthMs).filter((ms) => ms + fromMs <= (breaks[0]?.startMs ?? toMs)),
  };
}

const lengthOf = ({ startMs, endMs }: Interval): number => endMs - startMs;
const sum = (values: readonly number[]): number => values.reduce((total, each) => total + each, 0);

function union(spans: readonly Interval[]): Interval[] {
  const sorted = [...spans].sort((a, b) => a.startMs - b.startMs);
  const merged: Interval[] = [];
  for (const { startMs, endMs } of sorted) {
    const last = merged.at(-1);
    if (last && startMs <= last.endMs) last.endMs = Math.max(last.endMs, endMs);
    else merged.push({ startMs, endMs });
  }
  return merged;
}

const STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
];

function ticksOf(lengthMs: number): number[] {
  const stepS =
    STEPS_S.find((seconds) => lengthMs / (seconds * 1000) <= MAX_TICKS) ??
    Math.ceil(lengthMs / 86_400_000 / MAX_TICKS) * 86_400;
  const count = Math.floor(lengthMs / (stepS * 1000));
  return Array.from({ length: count + 1 }, (_, at) => at * stepS * 1000);
}
