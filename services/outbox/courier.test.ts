import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../../dev/stack/wait";
import { createLogger } from "../../platform/logger";
import type { Context } from "../context";
import { Courier } from "./courier";
import type { Delivery, Topic } from "./topic";

interface Entry {
  id: number;
  tries: number;
}

const PAUSE_MS = 60;

/** Entries in memory, and a receiver that can be down or reject single entries (negative ids). */
class FakeTopic implements Topic<Entry, number> {
  readonly name = "fake";
  readonly sweepMs = 10;
  readonly concurrency = 2;
  readonly pauseMs = PAUSE_MS;
  readonly due: Entry[] = [];
  readonly claimed: number[] = [];
  readonly delivered: number[] = [];
  readonly removed: number[][] = [];
  readonly postponed: { id: number; forS: number; why: string }[] = [];
  onCommit: (key?: number) => void = () => undefined;
  isDown = false;
  isPostgresDown = false;
  calls = 0;
  atOnce = 0;
  mostAtOnce = 0;
  answer: Delivery = "delivered";
  takesMs = 2;

  add(...ids: number[]): void {
    this.due.push(...ids.map((id) => ({ id, tries: 0 })));
  }

  subscribe(onCommit: (key?: number) => void): () => void {
    this.onCommit = onCommit;
    return () => {
      this.onCommit = () => undefined;
    };
  }

  async find(id: number): Promise<Entry> {
    return { id, tries: 0 };
  }

  async claim(limit: number): Promise<Entry[]> {
    const entries = this.due.splice(0, limit);
    if (entries.length > 0) this.claimed.push(entries.length);
    return entries;
  }

  async deliver({ id }: Entry): Promise<Delivery> {
    this.calls += 1;
    this.atOnce += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce);
    const { isPostgresDown } = this;
    await sleep(this.takesMs);
    this.atOnce -= 1;
    if (isPostgresDown) throw Object.assign(new Error("too late"), { code: "57014" });
    if (this.isDown || id < 0) throw Object.assign(new Error("no answer"), { code: 14 });
    if (this.answer === "delivered") this.delivered.push(id);
    return this.answer;
  }

  async remove(entries: Entry[]): Promise<void> {
    this.removed.push(entries.map(({ id }) => id));
  }

  async postpone({ id, tries }: Entry, forS: number, why: string): Promise<void> {
    this.postponed.push({ id, forS, why });
    if (this.isDown) this.due.push({ id, tries: tries + 1 });
  }

  async outageOf(): Promise<string | undefined> {
    return this.isDown ? "it is down" : undefined;
  }

  async isBack(): Promise<boolean> {
    return !this.isDown;
  }

  logFieldsOf = ({ id, tries }: Entry) => ({ id, tries });
  callOf = () => "fake";
}

const successes = { set: () => undefined };
const failures = { count: 0, inc: () => (failures.count += 1) };
const calls: object[] = [];
const ctx = {
  clock: { nowMs: () => performance.now() },
  logger: createLogger("silent"),
  metrics: {
    loopSuccess: successes,
    loopFailures: failures,
    temporalCalls: { inc: (of: object) => calls.push(of) },
  },
} as unknown as Context;

let topic: FakeTopic;
let courier: Courier<Entry, number>;

beforeEach(() => {
  topic = new FakeTopic();
  courier = new Courier(ctx, topic);
  failures.count = 0;
  calls.length = 0;
});

afterEach(async () => {
  await courier.stop();
});

test("delivers all due entries with limited concurrency, and removes them in one batch", async () => {
  topic.add(1, 2, 3, 4, 5);
  courier.start();
  await waitFor("all to be removed", () => topic.removed.flat().length === 5);
  expect(topic.delivered.toSorted()).toEqual([1, 2, 3, 4, 5]);
  expect(topic.mostAtOnce).toBe(2);
  expect(topic.removed).toHaveLength(1);
});

test("delivers entries of this process at once; a signal without a key delivers nothing yet", async () => {
  courier.start();
  for (const id of [7, 8, 9]) topic.onCommit(id);
  topic.onCommit();
  await waitFor("the deliveries", () => topic.delivered.length === 3);
  expect(topic.claimed).toEqual([]);
});

test("while the receiver is down, tries one entry after each pause; then delivers the rest", async () => {
  topic.isDown = true;
  topic.add(1, 2, 3, 4, 5, 6);
  courier.start();
  await waitFor("the loop to fail", () => failures.count > 0);
  const before = topic.calls;
  topic.onCommit(7);
  await sleep(2.5 * PAUSE_MS);
  expect(topic.calls - before).toBeLessThanOrEqual(3);
  expect(topic.claimed.slice(1).every((count) => count === 1)).toBe(true);
  topic.isDown = false;
  await waitFor("the rest", () => topic.delivered.length === 6);
});

test("an outage ends when the receiver is back, even if another process delivered the entries", async () => {
  topic.isDown = true;
  topic.add(1);
  courier.start();
  // Wait until the entry is due again. It is not due while a try is in progress.
  await waitFor("the loop to fail", () => failures.count > 0 && topic.due.length === 1);
  topic.isDown = false;
  topic.due.length = 0;
  await waitFor("the loop to work again", async () => {
    const before = failures.count;
    await sleep(5 * topic.sweepMs);
    return failures.count === before;
  });
  expect(topic.delivered).toEqual([]);
});

test("postpones an entry at fault, and delivers the others", async () => {
  topic.add(-1, 2, 3);
  courier.start();
  await waitFor("the others", () => topic.delivered.length === 2);
  expect(topic.postponed).toEqual([{ id: -1, forS: 0.2, why: "Error: no answer" }]);
  expect(failures.count).toBe(0);
  const taken = { call: "fake", result: "taken", code: "" };
  expect(calls).toHaveLength(3);
  expect(calls).toEqual(
    expect.arrayContaining([{ call: "fake", result: "failed", code: "14" }, taken]),
  );
});

test("an error of Postgres is no outage of the receiver, and no fault of the entry", async () => {
  topic.isPostgresDown = true;
  // The courier must not call `outageOf` after an error of Postgres. If it does, this `outageOf`
  // reports an outage, and the test fails.
  topic.outageOf = async () => "it is down";
  topic.add(1);
  courier.start();
  await waitFor("the delivery", () => topic.calls === 1);
  topic.isPostgresDown = false;
  topic.add(2, 3);
  await waitFor("the others", () => topic.removed.flat().length === 2);
  expect([topic.postponed, topic.removed.flat(), failures.count]).toEqual([[], [2, 3], 0]);
});

test("postpones an entry that is not awaited yet, and removes an obsolete one", async () => {
  topic.answer = "not_awaited";
  topic.add(1);
  courier.start();
  await waitFor("the delay", () => topic.postponed.length === 1);
  topic.answer = "obsolete";
  topic.add(2);
  await waitFor("the removal", () => topic.removed.length === 1);
  expect(topic.removed).toEqual([[2]]);
});

test("stop waits for deliveries in progress, and starts no others", async () => {
  topic.takesMs = 100;
  topic.add(1);
  courier.start();
  await waitFor("a delivery to begin", () => topic.calls === 1);
  topic.onCommit(2);
  topic.onCommit(3);
  await courier.stop();
  expect(topic.removed.flat()).toEqual([1, 2]);
  expect(topic.delivered).toEqual([1, 2]);
});
