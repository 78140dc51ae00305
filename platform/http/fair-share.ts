/** Recorded work loses half of its weight after this time. */
const HALF_LIFE_MS = 1_000;
const MEASURE_EVERY_MS = 20;
/**
 * Half-life of `recentBusyShare`, the average busy share of the process. `isBusy` becomes true as
 * soon as the busy share rises, but false only when this average has also fallen. Otherwise,
 * requests of the largest tenant would pass in each short pause (about 10 ms) between two requests
 * of another tenant, and would delay that tenant's second request.
 */
const BUSY_HALF_LIFE_MS = 100;
const TICK_MS = 10;
/**
 * Maximum of `passesPerTick`, the number of requests of the largest tenant (`isLargest`) that pass
 * per tick while the process is not busy. `passesPerTick` starts at one. With each measurement of
 * the busy share, it doubles if the process is not busy but requests had to wait. Otherwise it
 * halves, but not below one. The maximum is low, because the next requests may cause much more work
 * than the last ones.
 */
const MAX_PASSES_PER_TICK = 8;
/**
 * While the recent work of all other tenants together is more than this (about 15 requests a
 * second), one request of the largest tenant passes per tick instead of `passesPerTick`.
 */
const OTHERS_LOW = 20;
/**
 * Once the process has not been busy for CALM_MS, each tick lets at least this fraction (0 to 1) of
 * each queue's requests pass, so that a long queue drains faster than requests join it. If this
 * happened as soon as the process is no longer busy, these requests would make it busy again.
 */
const MIN_QUEUE_FRACTION_PER_TICK = 0.02;
const CALM_MS = 500;
/** A tenant counts as alone if the recent work of all other tenants is at most this. */
const OTHERS_IDLE = 0.05;
const MAX_TENANTS = 10_000;
/**
 * A tenant with less recent work than this (about 140 requests a second) does not make a process
 * busy, so its requests need not wait.
 */
const SMALL_TENANT = 200;

interface Options {
  /** The process counts as busy if it works for at least this share of its time (0 to 1). */
  busyFrom: number;
  /** Longest wait of a request. */
  maxWaitMs: number;
}

interface Account {
  cost: number;
  atMs: number;
}

interface Waiting {
  until: number;
  pass(): void;
}

interface Queue {
  tenant: string;
  waiting: Waiting[];
  /**
   * How many requests may pass early, that is, before they are overdue. Not a whole number: each
   * tick adds an amount, lets the whole part pass, and keeps the fraction for the next tick.
   */
  passCredit: number;
  tickedMs: number;
}

/**
 * Shares the process's time among tenants. While the process is busy and several tenants send
 * requests, FairShare delays a tenant's requests if this tenant caused more than half of the recent
 * work. A tenant that is alone may use all of the time.
 */
export class FairShare {
  private readonly accounts = new Map<string, Account>();
  private total: Account = { cost: 0, atMs: 0 };
  private unauthenticated: Account = { cost: 0, atMs: 0 };
  private readonly queues = new Map<string, Queue>();
  private timer: NodeJS.Timeout | undefined;
  private isBusy = false;
  private recentBusyShare = 0;
  /**
   * When the average `recentBusyShare` was last at least `busyFrom`. `isBusy` is not used here,
   * because one busy measurement makes it true, for example during a garbage collection.
   */
  private lastBusyMs = 0;
  private measuredMs = 0;
  private passesPerTick = 1;
  /**
   * Whether a larger `passesPerTick` would have let more requests pass since `isBusy` was last
   * measured.
   */
  private wasLimited = false;
  /**
   * How many requests of the largest tenant passed without waiting in the tick that began at
   * `passedMs`.
   */
  private passedThisTick = 0;
  private passedMs = 0;

  /**
   * @param busyShare returns how busy the process was since the last call of `busyShare`: from 0
   *   (idle) to 1.
   */
  constructor(
    private readonly options: Options,
    private readonly nowMs: () => number,
    private readonly busyShare: () => number,
  ) {}

  /**
   * Resolves to true when a request of this tenant may pass, or at once to false if `maxWaiting`
   * requests already wait.
   *
   * @param queue names one of the tenant's queues. Each queue passes its requests in order of
   *   arrival.
   */
  async enter(tenant: string, queue: string, maxWaiting: number): Promise<boolean> {
    this.recordWork(tenant, 1);
    const name = `${queue} ${tenant}`;
    const waiting = this.queues.get(name)?.waiting;
    if (!waiting && this.mayPass(tenant)) return true;
    if (waiting && waiting.length >= maxWaiting) return false;
    await new Promise<void>((pass) => {
      const one = { until: this.nowMs() + this.options.maxWaitMs, pass };
      if (waiting) waiting.push(one);
      else this.queues.set(name, { tenant, waiting: [one], passCredit: 0, tickedMs: this.nowMs() });
      this.timer ??= setInterval(() => this.tick(), TICK_MS);
    });
    return true;
  }

  /** Records work of a tenant. The unit is one minimal request. */
  recordWork(tenant: string, cost: number): void {
    // Use the same time for the account and the total: the difference between them is taken as the
    // work of the other tenants, so it must be 0 if only one tenant sends requests.
    const now = this.nowMs();
    const account = plus(this.accounts.get(tenant), cost, now);
    this.accounts.delete(tenant);
    this.accounts.set(tenant, account);
    this.total = plus(this.total, cost, now);
    for (const oldest of this.accounts.keys()) {
      if (this.accounts.size <= MAX_TENANTS) break;
      this.accounts.delete(oldest);
    }
  }

  /** Records work of requests without a valid key. */
  recordUnauthenticatedWork(cost: number): void {
    this.unauthenticated = plus(this.unauthenticated, cost, this.nowMs());
  }

  /**
   * Lets the due requests of each queue pass. If the queue's tenant is not delayed at the moment, a
   * few more requests may pass. The others wait for later ticks: if all requests of a long queue
   * passed together, they would make the process busy.
   */
  private tick(): void {
    for (const [name, queue] of this.queues) {
      const { tenant, waiting } = queue;
      const due = this.due(queue);
      const mustWait = this.isLargest(tenant) && this.measureIsBusy();
      const leaving = mustWait
        ? due
        : Math.max(due, this.passesPerTickOf(tenant), this.shareOf(waiting));
      if (waiting.length > leaving) this.wasLimited = true;
      for (const { pass } of waiting.splice(0, leaving)) pass();
      if (waiting.length === 0) this.queues.delete(name);
    }
    if (this.queues.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /**
   * Returns how many requests of a queue pass in this tick even if the process is busy. All overdue
   * requests pass. A request is overdue after it has waited for `maxWaitMs`. The other requests are
   * spread evenly over the time until the last request of the queue is overdue. If they were not
   * spread, all requests of a burst would become overdue, and pass, at the same time.
   */
  private due(queue: Queue): number {
    const { waiting } = queue;
    const now = this.nowMs();
    // In a busy process the timer fires late, so use the real time since the last tick.
    const passedMs = now - queue.tickedMs;
    const leftMs = (waiting.at(-1)?.until ?? now) - now;
    queue.tickedMs = now;
    queue.passCredit += ((waiting.length - 1) * passedMs) / Math.max(1, passedMs, leftMs);
    const early = Math.floor(queue.passCredit);
    queue.passCredit -= early;
    const overdue = waiting.findIndex(({ until }) => until > now);
    return Math.max(early, overdue === -1 ? waiting.length : overdue);
  }

  /**
   * Whether a request passes without waiting. Only a few requests of the largest tenant pass per
   * tick: a burst would make the process busy before the next measurement.
   */
  private mayPass(tenant: string): boolean {
    if (!this.isLargest(tenant)) return true;
    if (this.measureIsBusy()) return false;
    if (this.nowMs() - this.passedMs >= TICK_MS) {
      this.passedMs = this.nowMs();
      this.passedThisTick = 0;
    }
    if (this.passedThisTick >= this.passesPerTickOf(tenant)) {
      this.wasLimited = true;
      return false;
    }
    this.passedThisTick += 1;
    return true;
  }

  /** Whether the tenant causes most of the work while other tenants send requests too. */
  private isLargest(tenant: string): boolean {
    const now = this.nowMs();
    const own = left(this.accounts.get(tenant), now);
    const others = this.othersOf(tenant);
    // Perhaps requests without a valid key make the process busy. If the tenant's own work is at
    // most half of the work of those requests, the tenant need not wait.
    const unauthenticated = left(this.unauthenticated, now);
    return own > SMALL_TENANT && own > others && own > unauthenticated / 2 && others > OTHERS_IDLE;
  }

  /** Recent work of all other tenants. */
  private othersOf(tenant: string): number {
    const now = this.nowMs();
    return left(this.total, now) - left(this.accounts.get(tenant), now);
  }

  private passesPerTickOf(tenant: string): number {
    return this.othersOf(tenant) > OTHERS_LOW ? 1 : this.passesPerTick;
  }

  private shareOf(waiting: Waiting[]): number {
    const isCalm = this.nowMs() - this.lastBusyMs >= CALM_MS;
    return isCalm ? Math.ceil(waiting.length * MIN_QUEUE_FRACTION_PER_TICK) : 0;
  }

  private measureIsBusy(): boolean {
    const now = this.nowMs();
    const passedMs = now - this.measuredMs;
    if (passedMs >= MEASURE_EVERY_MS) {
      this.measuredMs = now;
      const share = this.busyShare();
      const weight = 0.5 ** (passedMs / BUSY_HALF_LIFE_MS);
      this.recentBusyShare = share + (this.recentBusyShare - share) * weight;
      this.isBusy = Math.max(share, this.recentBusyShare) >= this.options.busyFrom;
      if (this.recentBusyShare >= this.options.busyFrom) this.lastBusyMs = now;
      const factor = !this.isBusy && this.wasLimited ? 2 : 0.5;
      this.passesPerTick = Math.min(MAX_PASSES_PER_TICK, Math.max(1, this.passesPerTick * factor));
      this.wasLimited = false;
    }
    return this.isBusy;
  }
}

const plus = (account: Account | undefined, cost: number, nowMs: number): Account => ({
  cost: left(account, nowMs) + cost,
  atMs: nowMs,
});

const left = (account: Account | undefined, nowMs: number): number =>
  account === undefined ? 0 : account.cost * 0.5 ** ((nowMs - account.atMs) / HALF_LIFE_MS);

/**
 * Returns a function that measures the share of the time since its last call in which the event
 * loop was busy. The loop also appears busy while it waits for a CPU that other processes use. To
 * correct this, the result is limited to twice the share of a CPU that this process used. The limit
 * is not lower, because a process that gets too little CPU time for its work must count as busy.
 */
export function busyShare(): () => number {
  let last = usage();
  return () => {
    const now = usage();
    const { utilization } = performance.eventLoopUtilization(now.loop, last.loop);
    const passedMs = now.atMs - last.atMs;
    if (passedMs <= 0) return 0;
    const cpu = (now.cpuMs - last.cpuMs) / passedMs;
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
