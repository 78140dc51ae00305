import { Unavailable } from "../../core/errors";
import { FairQueue } from "../concurrency/fair-queue";
import { isAway } from "./errors";

/** Connections that no request takes: loops and activities that run in this process go on. */
const RESERVED = 4;

/** Turns at the database's connections. A long row moves on; one that stands still is given up. */
class ConnectionQueue {
  /** When the database was last seen to answer. */
  private answeredMs = 0;

  constructor(
    private readonly turns: FairQueue,
    private readonly standstillMs: number,
  ) {}

  /** @throws 503 where the database has answered nobody for as long as one waits for a connection. */
  async take<Result>(tenant: string, work: () => Promise<Result>): Promise<Result> {
    if (this.turns.hasRoomFor(tenant)) {
      return await this.turns.take(tenant, () => this.watched(work));
    }
    const standstill = new AbortController();
    const timer = setInterval(() => {
      if (performance.now() - this.answeredMs >= this.standstillMs) {
        standstill.abort(new Unavailable("the database is not available right now"));
      }
    }, this.standstillMs);
    const begin = (): Promise<Result> => {
      clearInterval(timer);
      return this.watched(work);
    };
    try {
      return await this.turns.take(tenant, begin, standstill.signal);
    } finally {
      clearInterval(timer);
    }
  }

  private async watched<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work();
      this.answeredMs = performance.now();
      return result;
    } catch (error) {
      if (!isAway(error)) this.answeredMs = performance.now();
      throw error;
    }
  }
}

/**
 * Who uses the pool's connections: requests of users and of workers have their own, and among each tenants
 * take turns. No tenant has all of them, so that its slow statements hold up its own requests.
 */
export interface ConnectionQueues {
  user: ConnectionQueue;
  worker: ConnectionQueue;
}

/** @param timeoutMs longest that a statement may take. */
export function createConnectionQueues(poolSize: number, timeoutMs: number): ConnectionQueues {
  const atOnce = Math.max(2, Math.floor((poolSize - RESERVED) / 2));
  const perTenant = Math.max(1, Math.floor(atOnce * 0.75));
  const turns = (): ConnectionQueue =>
    new ConnectionQueue(new FairQueue(atOnce, perTenant), timeoutMs / 2);
  return { user: turns(), worker: turns() };
}
