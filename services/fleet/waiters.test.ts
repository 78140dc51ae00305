import { Waiters } from "./waiters";

const never = new AbortController().signal;

test("a wake-up between parking and waiting is not lost", async () => {
  const waiters = new Waiters();
  const waiter = waiters.park("w", 60_000, never);
  expect(waiters.wake(["w", "elsewhere"])).toEqual(["elsewhere"]);
  expect(await waiter.woken).toBe("assigned");
  expect(waiters.workerIds).toEqual([]);
});

test("a second poll of a worker ends its first", async () => {
  const waiters = new Waiters();
  const first = waiters.park("w", 60_000, never);
  const second = waiters.park("w", 60_000, never);
  expect(await first.woken).toBe("superseded");
  expect(waiters.workerIds).toEqual(["w"]);
  second.leave();
  expect(waiters.workerIds).toEqual([]);
});

test("a signal and the end of the wait each end a poll", async () => {
  const waiters = new Waiters();
  const controller = new AbortController();
  const gone = waiters.park("a", 60_000, controller.signal);
  controller.abort();
  expect(await gone.woken).toBe("parted");
  expect(await waiters.park("b", 5, never).woken).toBe("time-out");
  expect(waiters.workerIds).toEqual([]);
});

test("a poll that its client gave up before it was parked ends at once", async () => {
  const waiter = new Waiters().park("w", 60_000, AbortSignal.abort());
  expect(await waiter.woken).toBe("parted");
});
