/** An account is worth half after so long. */
const HALF_LIFE_MS = 1_000;
const LOOK_MS = 40;
/** After so long one goes on of a tenant that waits, if it may. */
const TICK_MS = 10;
/** Less than this, of all others together, is a request some seconds ago. */
const NOBODY = 0.05;
const MAX_TENANTS = 10_000;

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
}

/**
 * The process's time, among tenants: while it is busy, requests of a tenant that caused more than half of its
 * recent work wait, as long as others come too. A tenant alone has all of it.
 */
export class FairShare {
  private readonly accounts = new Map<string, Account>();
  private total: Account = { cost: 0, atMs: 0 };
  private readonly waiting = new Map<string, Line>();
  private timer: NodeJS.Timeout | undefined;
  private isBusy = false;
  private lookedMs = 0;

  /** @param busyShare what share of the time since the last call the process was busy. */
  constructor(
    private readonly options: Options,
    private readonly nowMs: () => number,
    private readonly busyShare: () => number,
  ) {}

  /**
   * Resolves when a request of this tenant may go on.
   *
   * @param kind of request: those of one kind go on in the order in which they came.
   */
  async enter(tenant: string, kind = ""): Promise<void> {
    this.spend(tenant, 1);
    const name = `${kind} ${tenant}`;
    const line = this.waiting.get(name)?.waiting;
    if (!line && !this.mustWait(tenant)) return;
    await new Promise<void>((goOn) => {
      const one = { until: this.nowMs() + this.options.maxWaitMs, goOn };
      if (line) line.push(one);
      else this.waiting.set(name, { tenant, waiting: [one] });
      this.timer ??= setInterval(() => this.tick(), TICK_MS);
    });
  }

  /** Notes work that a tenant causes, in requests of the least kind. */
  spend(tenant: string, cost: number): void {
    const account = { cost: this.left(this.accounts.get(tenant)) + cost, atMs: this.nowMs() };
    this.accounts.delete(tenant);
    this.accounts.set(tenant, account);
    this.total = { cost: this.left(this.total) + cost, atMs: this.nowMs() };
    for (const oldest of this.accounts.keys()) {
      if (this.accounts.size <= MAX_TENANTS) break;
      this.accounts.delete(oldest);
    }
  }

  /** Lets one of each tenant go on that may, and all that waited the longest. */
  private tick(): void {
    const gone = new Set<string>();
    for (const [name, line] of [...this.waiting]) {
      const { tenant, waiting } = line;
      while (waiting[0] && waiting[0].until <= this.nowMs()) waiting.shift()?.goOn();
      if (!gone.has(tenant) && !this.mustWait(tenant)) {
        waiting.shift()?.goOn();
        gone.add(tenant);
        // To the end of the row: its lines take turns.
        this.waiting.delete(name);
        this.waiting.set(name, line);
      }
      if (waiting.length === 0) this.waiting.delete(name);
    }
    if (this.waiting.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private mustWait(tenant: string): boolean {
    this.look();
    const own = this.left(this.accounts.get(tenant));
    const others = this.left(this.total) - own;
    return this.isBusy && others > NOBODY && own > others;
  }

  private look(): void {
    if (this.nowMs() - this.lookedMs < LOOK_MS) return;
    this.lookedMs = this.nowMs();
    this.isBusy = this.busyShare() >= this.options.busyFrom;
  }

  private left({ cost, atMs }: Account = { cost: 0, atMs: 0 }): number {
    return cost * 0.5 ** ((this.nowMs() - atMs) / HALF_LIFE_MS);
  }
}

/** What share of the time since its last call this process's event loop was busy. */
export function eventLoopShare(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
