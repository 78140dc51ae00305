import { Unavailable } from "../../core/errors";
import { FairTurns } from "../fair-turns";

/** Connections that no request takes: loops and activities that run in this process go on. */
const RESERVED = 4;

/** Turns at the database's connections, for which a request waits no longer than for a connection. */
export class ConnectionTurns {
  constructor(
    private readonly turns: FairTurns,
    private readonly maxWaitMs: number,
  ) {}

  /** @throws 503 where no turn comes in time: the database is away, or the tenant has brought too much. */
  async take<Result>(tenant: string, work: () => Promise<Result>): Promise<Result> {
    if (this.turns.hasRoomFor(tenant)) return await this.turns.take(tenant, work);
    const signal = AbortSignal.timeout(this.maxWaitMs);
    let hasBegun = false;
    const begin = (): Promise<Result> => {
      hasBegun = true;
      return work();
    };
    try {
      return await this.turns.take(tenant, begin, signal);
    } catch (error) {
      if (hasBegun || error !== signal.reason) throw error;
      throw new Unavailable("the database is busy with this tenant's requests, or away; try again");
    }
  }
}

/**
 * Who uses the pool's connections: requests of users and of workers have their own, and among each tenants
 * take turns. No tenant has all of them, so that its slow statements hold up its own requests.
 */
export interface DatabaseTurns {
  user: ConnectionTurns;
  worker: ConnectionTurns;
}

/** @param timeoutMs longest that a statement may take. */
export function databaseTurnsOf(poolSize: number, timeoutMs: number): DatabaseTurns {
  const atOnce = Math.max(2, Math.floor((poolSize - RESERVED) / 2));
  const perTenant = Math.max(1, Math.floor(atOnce * 0.75));
  const turns = (): ConnectionTurns =>
    new ConnectionTurns(new FairTurns(atOnce, perTenant), timeoutMs / 2);
  return { user: turns(), worker: turns() };
}
