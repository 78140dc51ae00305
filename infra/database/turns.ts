import { FairTurns } from "../fair-turns";

/** Connections that no request takes: loops and activities that run in this process go on. */
const RESERVED = 4;

/**
 * Who uses the pool's connections: requests of users and of workers have their own, and among each tenants
 * take turns. No tenant has all of them, so that its slow statements hold up its own requests.
 */
export interface DatabaseTurns {
  user: FairTurns;
  worker: FairTurns;
}

export function databaseTurnsOf(poolSize: number): DatabaseTurns {
  const atOnce = Math.max(2, Math.floor((poolSize - RESERVED) / 2));
  const perTenant = Math.max(1, Math.floor(atOnce * 0.75));
  return {
    user: new FairTurns(atOnce, perTenant),
    worker: new FairTurns(atOnce, perTenant),
  };
}
