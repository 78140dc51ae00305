import { setTimeout as sleep } from "node:timers/promises";
import { FairShare } from "./fair-share";

let busy = 1;
let now = 0;
const share = (maxWaitMs = 10_000): FairShare =>
  new FairShare(
    { busyFrom: 0.75, maxWaitMs },
    () => now,
    () => busy,
  );

const enter = (fair: FairShare, tenant: string): Promise<boolean> => fair.enter(tenant, "", 1_000);

/** Whether a request passes at once. */
async function passesAtOnce(work: Promise<boolean>): Promise<boolean> {
  return await Promise.race([work.then(() => true), sleep(1).then(() => false)]);
}

beforeEach(() => {
  busy = 1;
  now = 1_000;
});

afterEach(() => {
  jest.useRealTimers();
});

/** Advances the clock of FairShare and the timers, which must be fake. */
async function pass(ms: number): Promise<void> {
  now += ms;
  await jest.advanceTimersByTimeAsync(ms);
}

test("a tenant alone may use all of a busy process", async () => {
  const fair = share();
  fair.recordWork("a", 1_000);
  expect(await passesAtOnce(enter(fair, "a"))).toBe(true);
});

test("a tenant alone does not wait, although time passes between two looks at the clock", async () => {
  const fair = new FairShare(
    { busyFrom: 0.75, maxWaitMs: 10_000 },
    () => {
      now += 0.1;
      return now;
    },
    () => 1,
  );
  fair.recordWork("a", 5_000);
  expect(await passesAtOnce(enter(fair, "a"))).toBe(true);
});

test.each([
  ["hundreds of requests a second while others send few", 0.1, 1_200, Number.POSITIVE_INFINITY],
  ["fewer while others send many", 1, 200, 600],
])(
  "the largest tenant of a process that is not busy gets through %s",
  async (_, othersPerTick, atLeast, atMost) => {
    jest.useFakeTimers();
    const fair = share(5_000);
    fair.recordWork("big", 5_000);
    let work = 0;
    let passed = 0;
    const sendNext = (): void => {
      void enter(fair, "big").then(() => {
        passed += 1;
        work += 1;
        sendNext();
      });
    };
    for (let n = 0; n < 64; n++) sendNext();
    for (let n = 0; n < 200; n++) {
      fair.recordWork("small", othersPerTick);
      // Each request keeps the process busy for half a millisecond.
      busy = work / 20;
      work = 0;
      await pass(10);
    }
    expect(passed).toBeGreaterThan(atLeast);
    expect(passed).toBeLessThan(atMost);
  },
);

test("the tenant that causes most of the work waits, and the other does not", async () => {
  const fair = share();
  fair.recordWork("big", 1_000);
  expect(await passesAtOnce(enter(fair, "small"))).toBe(true);
  const waits = enter(fair, "big");
  expect(await passesAtOnce(waits)).toBe(false);
  expect(await passesAtOnce(enter(fair, "small"))).toBe(true);
  busy = 0;
  now += 200;
  expect(await waits).toBe(true);
});

test("the largest tenant also waits in the short pauses of a busy process", async () => {
  jest.useFakeTimers();
  const fair = share();
  fair.recordWork("big", 100_000);
  fair.recordWork("small", 1_000);
  let passed = false;
  void enter(fair, "big").then(() => {
    passed = true;
  });
  const work = async (busyShare: number, ms: number): Promise<void> => {
    busy = busyShare;
    await pass(ms);
  };
  for (let n = 0; n < 20; n++) {
    await work(0.2, 20);
    await work(1, 100);
    expect(passed).toBe(false);
  }
  for (let n = 0; n < 10; n++) await work(0.2, 20);
  expect(passed).toBe(true);
});

test("the largest tenant waits as soon as the process is busy, also after a calm time", async () => {
  const fair = share();
  fair.recordWork("big", 100_000);
  fair.recordWork("small", 1_000);
  busy = 0;
  for (let n = 0; n < 20; n++) {
    now += 20;
    expect(await passesAtOnce(enter(fair, "big"))).toBe(true);
  }
  busy = 1;
  now += 20;
  const waits = enter(fair, "big");
  expect(await passesAtOnce(waits)).toBe(false);
  now += 10_000;
  await waits;
});

test("no tenant waits for the work of unauthenticated requests, and no tenant can hide behind it", async () => {
  const fair = share();
  fair.recordWork("honest", 1_000);
  fair.recordWork("small", 1);
  fair.recordUnauthenticatedWork(10_000);
  expect(await passesAtOnce(enter(fair, "honest"))).toBe(true);
  fair.recordWork("hiding", 8_000);
  const waits = enter(fair, "hiding");
  expect(await passesAtOnce(waits)).toBe(false);
  busy = 0;
  now += 200;
  await waits;
});

test("a burst of the largest tenant is spread while other tenants send requests, even if the process is idle", async () => {
  jest.useFakeTimers();
  busy = 0.1;
  const fair = share();
  fair.recordWork("big", 1_000);
  fair.recordWork("small", 1);
  let passed = 0;
  const all = Array.from({ length: 40 }, () => enter(fair, "big").then(() => passed++));
  await jest.advanceTimersByTimeAsync(0);
  expect(passed).toBeLessThanOrEqual(2);
  expect(await fair.enter("small", "", 1_000)).toBe(true);
  for (let n = 0; n < 50; n++) {
    await pass(10);
  }
  await Promise.all(all);
});

test("a tenant with little work never waits", async () => {
  const fair = share();
  fair.recordWork("honest", 150);
  fair.recordWork("other", 1);
  expect(await passesAtOnce(enter(fair, "honest"))).toBe(true);
});

test("no request waits while the process is not busy", async () => {
  busy = 0.5;
  const fair = share();
  fair.recordWork("big", 1_000);
  fair.recordWork("small", 1);
  expect(await passesAtOnce(enter(fair, "big"))).toBe(true);
});

test("no request waits longer than the maximum", async () => {
  const fair = share(500);
  fair.recordWork("big", 1_000);
  fair.recordWork("small", 1);
  const waits = enter(fair, "big");
  expect(await passesAtOnce(waits)).toBe(false);
  now += 500;
  await waits;
});

test.each([
  [10, 3],
  [50, 15],
])(
  "a burst is spread over time while the process is busy and ticks every %i ms",
  async (lateMs, most) => {
    jest.useFakeTimers();
    const fair = share(5_000);
    fair.recordWork("big", 100_000);
    fair.recordWork("small", 1);
    const passed: number[] = [];
    const all = Array.from({ length: 300 }, () => enter(fair, "big").then(() => passed.push(now)));
    while (now < 7_000) {
      now += lateMs;
      fair.recordWork("big", 1_000);
      fair.recordWork("small", 1);
      await jest.advanceTimersByTimeAsync(10);
    }
    await Promise.all(all);
    expect(Math.max(...passed)).toBeLessThanOrEqual(1_000 + 5_000 + lateMs);
    const inOneTick = (at: number): number => passed.filter((other) => other === at).length;
    expect(Math.max(...passed.map(inOneTick))).toBeLessThanOrEqual(most);
  },
);

test("a single waiting request waits the maximum time while the process is busy", async () => {
  jest.useFakeTimers();
  const fair = share(5_000);
  fair.recordWork("big", 100_000);
  fair.recordWork("small", 1);
  let passed = 0;
  const waits = enter(fair, "big").then(() => {
    passed = now;
  });
  while (passed === 0 && now < 10_000) {
    now += 10;
    fair.recordWork("big", 1_000);
    fair.recordWork("small", 1);
    await jest.advanceTimersByTimeAsync(10);
  }
  await waits;
  expect(passed - 1_000).toBeGreaterThanOrEqual(4_900);
});

test("waiting requests pass in order, and the work of a formerly large tenant decays", async () => {
  const fair = share();
  fair.recordWork("big", 1_000);
  fair.recordWork("small", 1);
  const order: number[] = [];
  const all = [1, 2, 3].map((n) => enter(fair, "big").then(() => order.push(n)));
  expect(await passesAtOnce(enter(fair, "big"))).toBe(false);
  for (let n = 0; n < 10; n++) fair.recordWork("small", 1);
  now += 5_000;
  for (let n = 0; n < 100; n++) fair.recordWork("small", 1);
  await Promise.all(all);
  expect(order).toEqual([1, 2, 3]);
});

test("once the process is not busy a queue drains, however fast requests join it", async () => {
  jest.useFakeTimers();
  const fair = share(5_000);
  fair.recordWork("big", 1_000);
  fair.recordWork("small", 1);
  const waits: number[] = [];
  // Simulates 2,000 requests a second for 4 s. The process is busy while the first 100 arrive.
  for (let n = 0; n < 8_000; n++) {
    if (n === 100) busy = 0;
    const arrived = now;
    enter(fair, "big").then(() => waits.push(now - arrived));
    if (n % 2 === 1) {
      now += 1;
      await jest.advanceTimersByTimeAsync(1);
    }
  }
  expect(waits.length).toBeGreaterThan(6_500);
  expect(Math.max(...waits.slice(-1_000))).toBeLessThanOrEqual(600);
});

test("a long queue passes slowly until the process was not busy for half a second", async () => {
  jest.useFakeTimers();
  const fair = share(60_000);
  fair.recordWork("big", 1_000_000);
  let passed = 0;
  const step = async (busyShare: number, ms: number): Promise<number> => {
    const before = passed;
    busy = busyShare;
    for (let at = 0; at < ms; at += 10) {
      fair.recordWork("small", 1);
      await pass(10);
    }
    return passed - before;
  };
  fair.recordWork("small", 1);
  for (let n = 0; n < 900; n++) void enter(fair, "big").then(() => passed++);
  await step(1, 100);
  const inPause = await step(0.1, 300);
  expect(inPause).toBeGreaterThan(5);
  expect(inPause).toBeLessThan(60);
  expect(await step(0.1, 700)).toBeGreaterThan(200);
  await step(0.1, 10_000);
});

test("a queue drains although the process is busy in one look of ten", async () => {
  jest.useFakeTimers();
  const fair = share(60_000);
  fair.recordWork("big", 1_000_000);
  const waits: number[] = [];
  // Simulates 200 requests a second for 10 s. If one request passed per tick, only 100 would
  // pass per second. The process is busy in every tenth measurement.
  for (let n = 0; n < 1_000; n++) {
    busy = n % 20 < 2 ? 1 : 0.2;
    fair.recordWork("small", 1);
    for (let more = 0; more < 2; more++) {
      const arrived = now;
      void enter(fair, "big").then(() => waits.push(now - arrived));
    }
    await pass(10);
  }
  busy = 0;
  for (let n = 0; n < 200; n++) await pass(10);
  expect(waits.length).toBe(2_000);
  expect(Math.max(...waits)).toBeLessThan(2_000);
});

test("requests beyond the maximum length of a queue are refused", async () => {
  const fair = share(500);
  fair.recordWork("big", 1_000);
  fair.recordWork("small", 1);
  const waits = [1, 2].map(() => fair.enter("big", "polls", 2));
  expect(await fair.enter("big", "polls", 2)).toBe(false);
  now += 500;
  expect(await Promise.all(waits)).toEqual([true, true]);
});
