import { fieldsOf } from "../process-fields";

/** Interval of the calls of `verdict`, in ms. */
export const TICK_MS = 100;

/**
 * A longer interval between two calls of `verdict` means that this process was suspended. Only this
 * much of the interval is added to the elapsed time.
 */
const LONGEST_GAP_MS = 5 * TICK_MS;

/**
 * A reader is "starved" when the elapsed time reaches the time limit multiplied by this factor. The
 * reader has a low priority, so it may need longer than the limit on a busy machine.
 */
const STARVED_FACTOR = 4;

/** Milliseconds per clock tick of Linux. /proc/<pid>/stat has times in ticks. */
const MS_PER_CPU_TICK = 10;

/**
 * The time limit for one file. Excludes time in which this process or the reader did not run:
 * SIGSTOP, a suspended machine, a disk that hangs, a lack of CPU time. Such time must not affect
 * the verdict on the file, which becomes part of a bill and a manifest.
 */
export class ReadingLimit {
  private passedMs = 0;
  private lastMs: number;
  private readonly cpuBeforeMs: number;

  constructor(
    private readonly pid: number | undefined,
    private readonly timeoutMs: number,
    private readonly nowMs: () => number = () => performance.now(),
    private readonly cpuMsOf: (pid: number | undefined) => number = cpuMs,
  ) {
    this.lastMs = nowMs();
    this.cpuBeforeMs = cpuMsOf(pid);
  }

  /**
   * Call every TICK_MS. "reached": the reader has used up the time limit. "starved": the reader got
   * too little CPU time, so the caller must end the read. Undefined: the reader may continue.
   */
  verdict(): "reached" | "starved" | undefined {
    if (this.readMs() >= this.timeoutMs) return "reached";
    return this.passedMs >= STARVED_FACTOR * this.timeoutMs ? "starved" : undefined;
  }

  /**
   * The reader's running time in ms: its CPU time, but at most the elapsed time. Excludes time in
   * which this process was suspended.
   */
  readMs(): number {
    const nowMs = this.nowMs();
    this.passedMs += Math.min(nowMs - this.lastMs, LONGEST_GAP_MS);
    this.lastMs = nowMs;
    const usedMs = this.cpuMsOf(this.pid) - this.cpuBeforeMs;
    // NaN: the process has ended, or there is no /proc.
    return Number.isNaN(usedMs) ? this.passedMs : Math.min(this.passedMs, usedMs);
  }
}

/** CPU time of a process so far, over all of its threads. */
function cpuMs(pid: number | undefined): number {
  try {
    // utime and stime: fields 14 and 15. `fieldsOf` starts at field 3, so field 14 has index 11.
    const [user, system] = fieldsOf(pid ?? 0).slice(11, 13);
    return (Number(user) + Number(system)) * MS_PER_CPU_TICK;
  } catch {
    return Number.NaN;
  }
}
