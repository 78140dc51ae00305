import { Unavailable } from "../../core/errors";
import { FairQueue } from "../concurrency/fair-queue";
import { isUnavailable } from "./errors";

/** Connections reserved for background loops and activities of this process. */
const RESERVED = 4;

/**
 * A fair queue for database connections. While the database responds to running requests, other
 * requests wait, no matter how long the queue is. If the database stops responding, waiting
 * requests are refused.
 */
class ConnectionQueue {
  /**
   * The time of the database's last response to a request. If no request is running, the start of
   * a request also sets this time, because an idle database is not stalled.
   */
  private lastProgressMs = 0;
  private running = 0;

  constructor(
    private readonly queue: FairQueue,
    private readonly stallMs: number,
  ) {}

  /** Whether the database has not responded to any request for `stallMs`. */
  get isStalled(): boolean {
    return performance.now() - this.lastProgressMs >= this.stallMs;
  }

  /** @throws 503 if the database is stalled. */
  async run<Result>(tenant: string, work: () => Promise<Result>): Promise<Result> {
    if (this.queue.hasRoomFor(tenant)) {
      return await this.queue.run(tenant, () => this.watched(work));
    }
    const stall = new AbortController();
    const timer = setInterval(() => {
      if (this.isStalled) stall.abort(stalled());
    }, this.stallMs);
    const begin = async (): Promise<Result> => {
      clearInterval(timer);
      // Check again: the slot may be free because an earlier request timed out.
      if (this.isStalled) throw stalled();
      return await this.watched(work);
    };
    try {
      return await this.queue.run(tenant, begin, stall.signal);
    } finally {
      clearInterval(timer);
    }
  }

  private async watched<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.running === 0) this.lastProgressMs = performance.now();
    this.running += 1;
    try {
      const result = await work();
      this.lastProgressMs = performance.now();
      return result;
    } catch (error) {
      if (!isUnavailable(error)) this.lastProgressMs = performance.now();
      throw error;
    } finally {
      this.running -= 1;
    }
  }
}

const stalled = (): Unavailable =>
  new Unavailable("the database is unavailable; try again shortly");

/**
 * Shares the pool's connections. Requests of users and of workers have separate queues, and each
 * queue serves tenants round-robin. No tenant may use all connections, so that its slow statements
 * delay only its own requests.
 */
export interface ConnectionQueues {
  user: ConnectionQueue;
  worker: ConnectionQueue;
}

/**
 * Divides the pool's connections between the queues.
 * @param timeoutMs longest time of a statement.
 */
export function createConnectionQueues(poolSize: number, timeoutMs: number): ConnectionQueues {
  const atOnce = Math.max(2, Math.floor((poolSize - RESERVED) / 2));
  const perTenant = Math.max(1, Math.floor(atOnce * 0.75));
  const create = (): ConnectionQueue =>
    new ConnectionQueue(new FairQueue(atOnce, perTenant), timeoutMs / 2);
  return { user: create(), worker: create() };
}
