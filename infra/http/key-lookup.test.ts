import { EventEmitter } from "node:events";
import type { AuthenticatingRow } from "../database/keys";
import type { Queryable } from "../database/pool";
import type { Signals } from "../signals";
import { KeyLookup } from "./key-lookup";

const DIGEST = Buffer.alloc(32, 7);
const ROW: AuthenticatingRow = {
  key_id: "key_1",
  user_id: "ann",
  scope: "user",
  name: "laptop",
  made_by_admin: false,
  workers: null,
  digest: DIGEST,
  is_unnoticed: true,
  session_of: null,
  lasts: true,
};

/** A look-up over a database that holds these rows, and takes until `answer` is called where it is slow. */
function lookupOver(rows: AuthenticatingRow[], { isSlow = false } = {}) {
  const signals = new EventEmitter();
  const state = { rows, nowMs: 0, looks: 0, answer: (): void => undefined };
  const db = {
    query: async () => {
      state.looks += 1;
      const seen = state.rows;
      if (isSlow) {
        await new Promise<void>((resolve) => {
          state.answer = resolve;
        });
      }
      return { rows: seen };
    },
  } as unknown as Queryable;
  const keys = new KeyLookup(db, signals as unknown as Signals, () => state.nowMs);
  return { keys, signals, state };
}

test("a key that was found is kept for less than a second, and its use is noted once", async () => {
  const { keys, state } = lookupOver([ROW]);
  expect(await keys.find(DIGEST, false)).toMatchObject({ key_id: "key_1", is_unnoticed: true });
  state.nowMs = 800;
  expect(await keys.find(DIGEST, false)).toMatchObject({ key_id: "key_1", is_unnoticed: false });
  expect(state.looks).toBe(1);
  state.rows = [];
  state.nowMs = 999;
  expect(await keys.find(DIGEST, false)).toBeUndefined();
});

test("a key that nobody has, or that soon expires, is looked up each time", async () => {
  const { keys, state } = lookupOver([{ ...ROW, lasts: false }]);
  await keys.find(DIGEST, false);
  await keys.find(DIGEST, false);
  state.rows = [];
  await keys.find(DIGEST, false);
  await keys.find(DIGEST, false);
  expect(state.looks).toBe(4);
});

test("a revocation is known at once, also to a look-up that was under way and saw the key alive", async () => {
  const { keys, signals, state } = lookupOver([ROW], { isSlow: true });
  const early = keys.find(DIGEST, false);
  state.rows = [];
  signals.emit("revoked", ["key_1"]);
  state.answer();
  expect(await early).toMatchObject({ key_id: "key_1" });
  const late = keys.find(DIGEST, false);
  state.answer();
  expect(await late).toBeUndefined();
  expect(state.looks).toBe(2);
});
