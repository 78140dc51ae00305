/** An account is worth half after so long. */
const HALF_LIFE_MS = 1_000;
const LOOK_MS = 20;
/** After so long the next of a line go on, if their tenant may: one, or this share of a long line. */
const TICK_MS = 10;
const SHARE_AT_ONCE = 0.02;
/** Less than this, of all others together, is a request some seconds ago. */
const NOBODY = 0.05;
const MAX_TENANTS = 10_000;
/** Less than this, about 140 requests a second, keeps no process busy, whatever else does. */
const LITTLE = 200;

interface Options {
  /** Of its time, from which on the process is busy. */
  busyFrom: number;
  /** Nothing waits longer. */
  maxWaitMs: number;
}

interface Account {
  cost: number;
  atMs: number;
}

interface Waiting {
  until: number;
  goOn(): void;
}

interface Line {
  tenant: string;
  waiting: Waiting[];
  /** How many may go on before their time is up; what is less than one is carried to the next tick. */
  early: number;
  tickedMs: number;
}

/**
 * The process's time, among tenants: while it is busy, requests of a tenant that caused more than half of its
 * recent work wait, as long as other tenants come too. A tenant alone has all of it.
 */
export class FairShare {
  private readonly accounts = new Map<string, Account>();
  private total: Account = { cost: 0, atMs: 0 };
  private strangers: Account = { cost: 0, atMs: 0 };
  private readonly lines = new Map<string, Line>();
  private timer: NodeJS.Timeout | undefined;
  private isBusy = false;
  private lookedMs = 0;
  /** When a request of the largest last passed without having waited. */
  private passedMs = 0;

  /** @param busyShare what share of the time since the last call the process was busy. */
  constructor(
    private readonly options: Options,
    private readonly nowMs: () => number,
    private readonly busyShare: () => number,
  ) {}

  /**
   * Resolves when a request of this tenant may go on; to false at once if as many wait already as may.
   *
   * @param line where it waits: those of one go on in the order in which they came.
   */
  async enter(tenant: string, line: string, maxWaiting: number): Promise<boolean> {
    this.spend(tenant, 1);
    const name = `${line} ${tenant}`;
    const waiting = this.lines.get(name)?.waiting;
    if (!waiting && this.mayPass(tenant)) return true;
    if (waiting && waiting.length >= maxWaiting) return false;
    await new Promise<void>((goOn) => {
      const one = { until: this.nowMs() + this.options.maxWaitMs, goOn };
      if (waiting) waiting.push(one);
      else this.lines.set(name, { tenant, waiting: [one], early: 0, tickedMs: this.nowMs() });
      this.timer ??= setInterval(() => this.tick(), TICK_MS);
    });
    return true;
  }

  /** Notes work that a tenant causes, in requests of the least kind. */
  spend(tenant: string, cost: number): void {
    const account = this.plus(this.accounts.get(tenant), cost);
    this.accounts.delete(tenant);
    this.accounts.set(tenant, account);
    this.total = this.plus(this.total, cost);
    for (const oldest of this.accounts.keys()) {
      if (this.accounts.size <= MAX_TENANTS) break;
      this.accounts.delete(oldest);
    }
  }

  /** Notes work that somebody without a key causes. */
  spendOnStranger(cost: number): void {
    this.strangers = this.plus(this.strangers, cost);
  }

  /**
   * Lets go on who waited the longest, and the next of each line whose tenant may. Not all of them, which would
   * make the process busy at once; but of a long line so many that it ends however many join it.
   */
  private tick(): void {
    for (const [name, line] of this.lines) {
      const { tenant, waiting } = line;
      const next = Math.ceil(waiting.length * SHARE_AT_ONCE);
      const due = this.due(line);
      const leaving = this.mustWait(tenant) ? due : Math.max(due, next);
      for (const { goOn } of waiting.splice(0, leaving)) goOn();
      if (waiting.length === 0) this.lines.delete(name);
    }
    if (this.lines.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /**
   * How many of a line go on whatever the process does: whose time is up, and before it as many as spread the
   * line evenly over the time that is left to it. What came at once would else go on at once.
   */
  private due(line: Line): number {
    const { waiting } = line;
    const now = this.nowMs();
    // A busy process ticks late.
    const passedMs = now - line.tickedMs;
    const leftMs = (waiting.at(-1)?.until ?? now) - now;
    line.tickedMs = now;
    line.early += ((waiting.length - 1) * passedMs) / Math.max(1, passedMs, leftMs);
    const early = Math.floor(line.early);
    line.early -= early;
    const overdue = waiting.findIndex(({ until }) => until > now);
    return Math.max(early, overdue === -1 ? waiting.length : overdue);
  }

  /** Without waiting. Of the largest one in a tick: a burst would make the process busy before it is looked at again. */
  private mayPass(tenant: string): boolean {
    if (!this.isLargest(tenant)) return true;
    if (this.looksBusy()) return false;
    if (this.nowMs() - this.passedMs < TICK_MS) return false;
    this.passedMs = this.nowMs();
    return true;
  }

  private mustWait(tenant: string): boolean {
    return this.isLargest(tenant) && this.looksBusy();
  }

  /** Whether it causes most of the work, while others come too. */
  private isLargest(tenant: string): boolean {
    const own = this.left(this.accounts.get(tenant));
    const others = this.left(this.total) - own;
    // Where strangers make the process busy, no tenant pays for it; nor may one hide behind them.
    return own > LITTLE && own > others && own > this.left(this.strangers) / 2 && others > NOBODY;
  }

  private looksBusy(): boolean {
    if (this.nowMs() - this.lookedMs >= LOOK_MS) {
      this.lookedMs = this.nowMs();
      this.isBusy = this.busyShare() >= this.options.busyFrom;
    }
    return this.isBusy;
  }

  private plus(account: Account | undefined, cost: number): Account {
    return { cost: this.left(account) + cost, atMs: this.nowMs() };
  }

  private left({ cost, atMs }: Account = { cost: 0, atMs: 0 }): number {
    return cost * 0.5 ** ((this.nowMs() - atMs) / HALF_LIFE_MS);
  }
}

/**
 * What share of the time since its last call this process's event loop was busy. On a machine where others take the
 * processors it is busy by the clock while it does little: so no more than twice the CPU time that the process had.
 */
export function busyShare(): () => number {
  let last = usage();
  return () => {
    const now = usage();
    const { utilization } = performance.eventLoopUtilization(now.loop, last.loop);
    const cpu = (now.cpuMs - last.cpuMs) / (now.atMs - last.atMs);
    last = now;
    return Math.min(utilization, 2 * cpu);
  };
}

function usage() {
  const { user, system } = process.cpuUsage();
  return {
    atMs: performance.now(),
    cpuMs: (user + system) / 1_000,
    loop: performance.eventLoopUtilization(),
  };
}
