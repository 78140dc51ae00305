import { LongPolls } from "./long-polls";

const never = new AbortController().signal;

test("a wake-up between parking and waiting is not lost", async () => {
  const longPolls = new LongPolls();
  const waiter = longPolls.park("w", 60_000, never);
  expect(longPolls.wake(["w", "elsewhere"])).toEqual(["elsewhere"]);
  expect(await waiter.woken).toBe("assigned");
  expect(longPolls.workerIds).toEqual([]);
});

test("a second poll of a worker ends its first", async () => {
  const longPolls = new LongPolls();
  const first = longPolls.park("w", 60_000, never);
  const second = longPolls.park("w", 60_000, never);
  expect(await first.woken).toBe("superseded");
  expect(longPolls.workerIds).toEqual(["w"]);
  second.leave();
  expect(longPolls.workerIds).toEqual([]);
});

test("a signal and the end of the wait each end a poll", async () => {
  const longPolls = new LongPolls();
  const controller = new AbortController();
  const gone = longPolls.park("a", 60_000, controller.signal);
  controller.abort();
  expect(await gone.woken).toBe("parted");
  expect(await longPolls.park("b", 5, never).woken).toBe("time-out");
  expect(longPolls.workerIds).toEqual([]);
});

test("a poll that its client gave up before it was parked ends at once", async () => {
  const waiter = new LongPolls().park("w", 60_000, AbortSignal.abort());
  expect(await waiter.woken).toBe("parted");
});
