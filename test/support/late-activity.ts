import { type Context as ActivityContext, asyncLocalStorage } from "@temporalio/activity";
import type pg from "pg";
import type { ObjectStore } from "../../platform/store/object-store";

/** A store whose writes wait until they are released. */
export function pausingStore(store: ObjectStore) {
  let ask = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  let goOn = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const put = async (key: string, body: Buffer): Promise<void> => {
    ask();
    await released;
    await store.put(key, body);
  };
  const paused = Object.create(store, { put: { value: put } }) as ObjectStore;
  return { store: paused, untilAsked: () => asked, goOn: () => goOn() };
}

/** Runs `work` like an activity of Temporal's worker. */
export function asActivity<T>(activityType: string, work: () => Promise<T>): Promise<T> {
  const info = { activityType, activityId: "1", isLocal: true };
  const cancellationSignal = new AbortController().signal;
  const context = { info, cancellationSignal } as unknown as ActivityContext;
  return asyncLocalStorage.run(context, work);
}

/** A pool whose transactions wait until they are released. Single statements do not. */
export function pausingPool(pool: pg.Pool) {
  let ask = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  let goOn = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const connect = async (): Promise<pg.PoolClient> => {
    ask();
    await released;
    return await pool.connect();
  };
  const query = pool.query.bind(pool);
  const paused = Object.create(pool, { connect: { value: connect }, query: { value: query } });
  return { pool: paused as pg.Pool, untilAsked: () => asked, goOn: () => goOn() };
}
