import { LongPolls } from "./long-polls";

const never = new AbortController().signal;

test("a wake-up between registering a poll and awaiting it is not lost", async () => {
  const longPolls = new LongPolls();
  const poll = longPolls.wait("w", 60_000, never);
  expect(longPolls.wake(["w", "elsewhere"])).toEqual(["elsewhere"]);
  expect(await poll.woken).toBe("assigned");
  expect(longPolls.workerIds).toEqual([]);
});

test("a worker's second poll ends its first", async () => {
  const longPolls = new LongPolls();
  const first = longPolls.wait("w", 60_000, never);
  const second = longPolls.wait("w", 60_000, never);
  expect(await first.woken).toBe("superseded");
  expect(longPolls.workerIds).toEqual(["w"]);
  second.leave();
  expect(longPolls.workerIds).toEqual([]);
});

test("an abort signal and the time-out each end a poll", async () => {
  const longPolls = new LongPolls();
  const controller = new AbortController();
  const gone = longPolls.wait("a", 60_000, controller.signal);
  controller.abort();
  expect(await gone.woken).toBe("disconnected");
  expect(await longPolls.wait("b", 5, never).woken).toBe("time-out");
  expect(longPolls.workerIds).toEqual([]);
});

test("a poll whose client disconnected before it waits ends at once", async () => {
  const poll = new LongPolls().wait("w", 60_000, AbortSignal.abort());
  expect(await poll.woken).toBe("disconnected");
});
