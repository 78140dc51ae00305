/** Recorded work loses half of its weight after this time. */
const HALF_LIFE_MS = 1_000;
const LOOK_MS = 20;
/**
 * The recent busy share of the process loses half of its weight after this time. It keeps the
 * largest tenant's requests from passing in each pause of some 10 ms between two requests of another
 * tenant, where they would delay the next one. A rise of the busy share counts at once.
 */
const BUSY_HALF_LIFE_MS = 100;
const TICK_MS = 10;
/**
 * The most requests of the largest tenant (`isLargest`) that pass per tick while the process is not
 * busy. The current number, `atOnce`, starts at one. Every LOOK_MS it is doubled if the process was
 * not busy and requests waited for the limit; otherwise it is halved. The maximum is low, because
 * the next requests may be much more work than the last ones.
 */
const MAX_AT_ONCE = 8;
/**
 * If the recent work of all other tenants is more than this (about 15 requests a second), only one
 * request of the largest tenant passes per tick.
 */
const OTHERS_FEW = 20;
/**
 * At least this share of a queue passes per tick after the process was not busy for CALM_MS, so that
 * a long queue drains faster than requests join it. Sooner, it would make the process busy at once.
 */
const SHARE_AT_ONCE = 0.02;
const CALM_MS = 500;
/** Below this much work of all other tenants, a tenant counts as alone. */
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
  /** How many requests may pass before they are overdue. A fraction is kept for the next tick. */
  early: number;
  tickedMs: number;
}

/**
 * Shares the process's time among tenants. While the process is busy and several tenants send
 * requests, requests of a tenant that caused more than half of the recent work wait. A tenant alone
 * may use all of the time.
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
   * When the process was last busy on average, as far as it was measured: a single busy look, for
   * example a garbage collection, does not count.
   */
  private busyMs = 0;
  private lookedMs = 0;
  private atOnce = 1;
  /**
   * Whether a larger `atOnce` would have let more requests pass since `isBusy` was last measured.
   */
  private wasLimited = false;
  /** How many requests of the largest tenant passed without waiting in the tick that began at `passedMs`. */
  private passed = 0;
  private passedMs = 0;

  /**
   * @param busyShare returns the share of the time since its last call in which the process was
   *   busy (0 to 1).
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
    this.spend(tenant, 1);
    const name = `${queue} ${tenant}`;
    const waiting = this.queues.get(name)?.waiting;
    if (!waiting && this.mayPass(tenant)) return true;
    if (waiting && waiting.length >= maxWaiting) return false;
    await new Promise<void>((pass) => {
      const one = { until: this.nowMs() + this.options.maxWaitMs, pass };
      if (waiting) waiting.push(one);
      else this.queues.set(name, { tenant, waiting: [one], early: 0, tickedMs: this.nowMs() });
      this.timer ??= setInterval(() => this.tick(), TICK_MS);
    });
    return true;
  }

  /** Records work of a tenant. The unit is one minimal request. */
  spend(tenant: string, cost: number): void {
    // Use the same time for the account and the total. If only one tenant sends requests, they must
    // be equal: their difference is the work of the other tenants.
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
  spendUnauthenticated(cost: number): void {
    this.unauthenticated = plus(this.unauthenticated, cost, this.nowMs());
  }

  /**
   * Lets overdue requests pass. If the tenant need not wait, also lets more of its queue pass, but
   * not the whole queue, which would make the process busy at once.
   */
  private tick(): void {
    for (const [name, queue] of this.queues) {
      const { tenant, waiting } = queue;
      const due = this.due(queue);
      const mustWait = this.isLargest(tenant) && this.looksBusy();
      const leaving = mustWait ? due : Math.max(due, this.atOnceOf(tenant), this.shareOf(waiting));
      if (waiting.length > leaving) this.wasLimited = true;
      for (const { pass } of waiting.splice(0, leaving)) pass();
      if (waiting.length === 0) this.queues.delete(name);
    }
    if (this.queues.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /**
   * How many requests of a queue pass in this tick even if the process is busy: at least the
   * overdue ones. The rest of the queue is spread evenly over the time until its last request is
   * overdue. Otherwise, requests that arrive as a burst would wait together and then pass as one.
   */
  private due(queue: Queue): number {
    const { waiting } = queue;
    const now = this.nowMs();
    // In a busy process the timer fires late, so use the real time since the last tick.
    const passedMs = now - queue.tickedMs;
    const leftMs = (waiting.at(-1)?.until ?? now) - now;
    queue.tickedMs = now;
    queue.early += ((waiting.length - 1) * passedMs) / Math.max(1, passedMs, leftMs);
    const early = Math.floor(queue.early);
    queue.early -= early;
    const overdue = waiting.findIndex(({ until }) => until > now);
    return Math.max(early, overdue === -1 ? waiting.length : overdue);
  }

  /**
   * Whether a request passes without waiting. Only a few requests of the largest tenant pass per
   * tick: a burst would make the process busy before the next measurement.
   */
  private mayPass(tenant: string): boolean {
    if (!this.isLargest(tenant)) return true;
    if (this.looksBusy()) return false;
    if (this.nowMs() - this.passedMs >= TICK_MS) {
      this.passedMs = this.nowMs();
      this.passed = 0;
    }
    if (this.passed >= this.atOnceOf(tenant)) {
      this.wasLimited = true;
      return false;
    }
    this.passed += 1;
    return true;
  }

  /** Whether the tenant causes most of the work while other tenants send requests too. */
  private isLargest(tenant: string): boolean {
    const now = this.nowMs();
    const own = left(this.accounts.get(tenant), now);
    const others = this.othersOf(tenant);
    // If requests without a valid key cause most of the work, the tenant does not make the process
    // busy. So it waits only if its own work is more than half of theirs.
    const unauthenticated = left(this.unauthenticated, now);
    return own > SMALL_TENANT && own > others && own > unauthenticated / 2 && others > OTHERS_IDLE;
  }

  /** Recent work of all other tenants. */
  private othersOf(tenant: string): number {
    const now = this.nowMs();
    return left(this.total, now) - left(this.accounts.get(tenant), now);
  }

  private atOnceOf(tenant: string): number {
    return this.othersOf(tenant) > OTHERS_FEW ? 1 : this.atOnce;
  }

  private shareOf(waiting: Waiting[]): number {
    const isCalm = this.nowMs() - this.busyMs >= CALM_MS;
    return isCalm ? Math.ceil(waiting.length * SHARE_AT_ONCE) : 0;
  }

  private looksBusy(): boolean {
    const now = this.nowMs();
    const passedMs = now - this.lookedMs;
    if (passedMs >= LOOK_MS) {
      this.lookedMs = now;
      const share = this.busyShare();
      const weight = 0.5 ** (passedMs / BUSY_HALF_LIFE_MS);
      this.recentBusyShare = share + (this.recentBusyShare - share) * weight;
      this.isBusy = Math.max(share, this.recentBusyShare) >= this.options.busyFrom;
      if (this.recentBusyShare >= this.options.busyFrom) this.busyMs = now;
      const factor = !this.isBusy && this.wasLimited ? 2 : 0.5;
      this.atOnce = Math.min(MAX_AT_ONCE, Math.max(1, this.atOnce * factor));
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
 * loop was busy. If other processes use the CPUs, the loop looks busy although it does little. So
 * the result is at most twice the share of a CPU that this process used.
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
