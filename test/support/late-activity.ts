import { type Context as ActivityContext, asyncLocalStorage } from "@temporalio/activity";
import type pg from "pg";
import type { ObjectStore } from "../../platform/store/object-store";

/** Runs `work` like an activity of Temporal's worker. */
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
  let goOn = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const pause = (): Promise<void> => {
    ask();
    return released;
  };
  return { pause, untilAsked: () => asked, goOn: () => goOn() };
}

/** A store whose writes wait until they are released. */
export function pausingStore(store: ObjectStore) {
  const { pause, ...control } = pausing();
  const put = async (key: string, body: Buffer): Promise<void> => {
    await pause();
    await store.put(key, body);
  };
  const paused = Object.create(store, { put: { value: put } }) as ObjectStore;
  return { store: paused, ...control };
}

/** A pool whose transactions wait until they are released. Single statements do not. */
export function pausingPool(pool: pg.Pool) {
  const { pause, ...control } = pausing();
  const connect = async (): Promise<pg.PoolClient> => {
    await pause();
    return await pool.connect();
  };
  const query = pool.query.bind(pool);
  const paused = Object.create(pool, { connect: { value: connect }, query: { value: query } });
  return { pool: paused as pg.Pool, ...control };
}
