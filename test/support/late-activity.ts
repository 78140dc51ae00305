import { type Context as ActivityContext, asyncLocalStorage } from "@temporalio/activity";
import type pg from "pg";
import type { ObjectStore } from "../../platform/store/object-store";

/** Runs `work` in the context of a local activity, without a Temporal worker. */
export function asActivity<T>(activityType: string, work: () => Promise<T>): Promise<T> {
  const info = { activityType, activityId: "1", isLocal: true };
  const cancellationSignal = new AbortController().signal;
  const context = { info, cancellationSignal } as unknown as ActivityContext;
  return asyncLocalStorage.run(context, work);
}

/** A point at which calls wait until they are released. */
function pausing() {
  let ask = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  let resume = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    resume = resolve;
  });
  const pause = (): Promise<void> => {
    ask();
    return released;
  };
  return { pause, untilPaused: () => asked, resume: () => resume() };
}

/** A store whose calls of one kind wait until they are released. */
export function pausingStore(store: ObjectStore, kind: "put" | "remove" = "put") {
  const { pause, ...control } = pausing();
  const call = async (...given: unknown[]): Promise<void> => {
    await pause();
    await (store[kind] as (...given: unknown[]) => Promise<void>).apply(store, given);
  };
  const paused = Object.create(store, { [kind]: { value: call } }) as ObjectStore;
  return { store: paused, ...control };
}

/**
 * A pool in which each statement that contains all of these texts waits until it is released, also
 * within a transaction.
 */
export function pausingStatement(pool: pg.Pool, ...texts: string[]) {
  const { pause, ...control } = pausing();
  const through = <T extends pg.Pool | pg.PoolClient>(db: T): T["query"] => {
    const query = async (given: string | { text: string }): Promise<unknown> => {
      const text = typeof given === "string" ? given : given.text;
      if (texts.every((part) => text.includes(part))) await pause();
      return await (db.query as (given: unknown) => Promise<unknown>).call(db, given);
    };
    return query as T["query"];
  };
  const connect = async (): Promise<pg.PoolClient> => {
    const client = await pool.connect();
    const others = { on: client.on, off: client.off, release: client.release };
    const bound = Object.fromEntries(
      Object.entries(others).map(([name, call]) => [name, { value: call.bind(client) }]),
    );
    return Object.create(client, { ...bound, query: { value: through(client) } });
  };
  const query = { value: through(pool) };
  const paused = Object.create(pool, { connect: { value: connect }, query });
  return { pool: paused as pg.Pool, ...control };
}

/**
 * A pool whose transactions wait at their `begin` until they are released. Single statements do not
 * wait.
 */
export const pausingPool = (pool: pg.Pool) => pausingStatement(pool, "begin");
