import type { Dispatch } from "../jobs/dispatch";
import { LongPolls } from "./long-polls";

const never = new AbortController().signal;

const pollOf = (workerId: string, pollSeq = 1) => ({
  workerId,
  pollSeq,
  keyId: "key",
  leaseToken: null,
});

const JOB: Dispatch = {
  job_id: "job_1",
  user_id: "ann",
  attempt: 1,
  job_type: "audit",
  payload: {},
  params: {},
  timeout_s: 60,
  output_ids: {},
  deployment_id: null,
  serving_token: null,
  waited_s: 0,
  is_cancelled: false,
};

test("a wake-up between registering a poll and awaiting it is not lost", async () => {
  const longPolls = new LongPolls();
  const poll = longPolls.wait("ann", pollOf("w"), 60_000, never);
  expect(longPolls.wake(["w", "elsewhere"])).toEqual(["elsewhere"]);
  expect(await poll.woken).toBe("assigned");
  expect(longPolls.workerIds).toEqual([]);
});

test("a worker's second poll ends its first", async () => {
  const longPolls = new LongPolls();
  const first = longPolls.wait("ann", pollOf("w"), 60_000, never);
  const second = longPolls.wait("ann", pollOf("w"), 60_000, never);
  expect(await first.woken).toBe("superseded");
  expect(longPolls.workerIds).toEqual(["w"]);
  second.leave();
  expect(longPolls.workerIds).toEqual([]);
});

test("an abort signal and the time-out each end a poll", async () => {
  const longPolls = new LongPolls();
  const controller = new AbortController();
  const gone = longPolls.wait("ann", pollOf("a"), 60_000, controller.signal);
  controller.abort();
  expect(await gone.woken).toBe("disconnected");
  expect(await longPolls.wait("ann", pollOf("b"), 5, never).woken).toBe("time-out");
  expect(longPolls.workerIds).toEqual([]);
});

test("a poll whose client disconnected before it waits ends at once", async () => {
  const poll = new LongPolls().wait("ann", pollOf("w"), 60_000, AbortSignal.abort());
  expect(await poll.woken).toBe("disconnected");
});

test("a started attempt is the result of the poll that it started for, and of no later one", async () => {
  const longPolls = new LongPolls();
  const first = longPolls.wait("ann", pollOf("w", 1), 60_000, never);
  expect(longPolls.dispatch(pollOf("w", 1), JOB)).toBe(true);
  expect(await first.woken).toBe(JOB);
  expect(longPolls.dispatch(pollOf("w", 1), JOB)).toBe(false);
  const second = longPolls.wait("ann", pollOf("w", 2), 60_000, never);
  expect(longPolls.dispatch(pollOf("w", 1), JOB)).toBe(false);
  expect(longPolls.workerIds).toEqual(["w"]);
  second.leave();
});

test("attempts start only for a tenant's own polls that wait for a while longer", async () => {
  const longPolls = new LongPolls();
  const polls = [
    longPolls.wait("ann", pollOf("a"), 60_000, never),
    longPolls.wait("ann", pollOf("soon over"), 1_000, never),
    longPolls.wait("bob", pollOf("b"), 60_000, never),
  ];
  expect(longPolls.startable("ann")).toEqual([pollOf("a")]);
  expect(longPolls.startable("cyd")).toEqual([]);
  for (const poll of polls) poll.leave();
  expect(longPolls.startable("ann")).toEqual([]);
});
