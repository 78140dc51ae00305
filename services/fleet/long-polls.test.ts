import { setTimeout as sleep } from "node:timers/promises";
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
  expect(await poll.untilEnded()).toBe("assigned");
  expect(longPolls.workerIds).toEqual([]);
});

test("a worker's second poll ends its first", async () => {
  const longPolls = new LongPolls();
  const first = longPolls.wait("ann", pollOf("w"), 60_000, never);
  const second = longPolls.wait("ann", pollOf("w"), 60_000, never);
  expect(await first.untilEnded()).toBe("superseded");
  expect(longPolls.workerIds).toEqual(["w"]);
  second.leave();
  expect(longPolls.workerIds).toEqual([]);
});

test("an abort signal and the time-out each end a poll", async () => {
  const longPolls = new LongPolls();
  const controller = new AbortController();
  const gone = longPolls.wait("ann", pollOf("a"), 60_000, controller.signal);
  controller.abort();
  expect(await gone.untilEnded()).toBe("disconnected");
  expect(await longPolls.wait("ann", pollOf("b"), 5, never).untilEnded()).toBe("time-out");
  expect(longPolls.workerIds).toEqual([]);
});

test("a poll whose client disconnected before it waits ends at once", async () => {
  const poll = new LongPolls().wait("ann", pollOf("w"), 60_000, AbortSignal.abort());
  expect(await poll.untilEnded()).toBe("disconnected");
});

test("a started attempt is the result of the poll that it started for, and of no later one", async () => {
  const longPolls = new LongPolls();
  const first = longPolls.wait("ann", pollOf("w", 1), 60_000, never);
  expect(longPolls.deliver({ poll: pollOf("w", 1), job: JOB })).toBe(true);
  expect(await first.untilEnded()).toBe(JOB);
  expect(longPolls.deliver({ poll: pollOf("w", 1), job: JOB })).toBe(false);
  const second = longPolls.wait("ann", pollOf("w", 2), 60_000, never);
  expect(longPolls.deliver({ poll: pollOf("w", 1), job: JOB })).toBe(false);
  expect(longPolls.workerIds).toEqual(["w"]);
  second.leave();
});

test("attempts start only for a tenant's own polls whose result is awaited", async () => {
  const longPolls = new LongPolls();
  const reserved = (tenant: string) => longPolls.reserve(tenant, async (polls) => polls);
  const [own, other] = ["ann", "bob"].map((tenant) => {
    return longPolls.wait(tenant, pollOf(tenant), 60_000, never);
  });
  expect(await reserved("ann")).toEqual([]);
  void own?.untilEnded();
  void other?.untilEnded();
  expect(await reserved("ann")).toEqual([pollOf("ann")]);
  expect(await reserved("cyd")).toEqual([]);
  own?.leave();
  expect(await reserved("ann")).toEqual([]);
  other?.leave();
});

test("a poll does not time out while an attempt may be starting for it", async () => {
  const longPolls = new LongPolls();
  const woken = ["a", "b"].map((id) => longPolls.wait("ann", pollOf(id), 5, never).untilEnded());
  await longPolls.reserve("ann", async () => {
    await sleep(50);
    expect(longPolls.deliver({ poll: pollOf("b"), job: JOB })).toBe(true);
  });
  expect(await Promise.all(woken)).toEqual(["time-out", JOB]);
});

test("a poll that two statements have times out when both have ended", async () => {
  const longPolls = new LongPolls();
  const woken = longPolls.wait("ann", pollOf("a"), 5, never).untilEnded();
  await longPolls.reserve("ann", async () => {
    await longPolls.reserve("ann", async () => await sleep(50));
    expect(longPolls.deliver({ poll: pollOf("a"), job: JOB })).toBe(true);
  });
  expect(await woken).toBe(JOB);
});

test("a poll whose time has passed is reserved no more, so that overlapping reservations don't keep it", async () => {
  const longPolls = new LongPolls();
  const woken = longPolls.wait("ann", pollOf("a"), 5, never).untilEnded();
  let later: unknown;
  await longPolls.reserve("ann", async () => {
    await sleep(50);
    later = await longPolls.reserve("ann", async (polls) => polls);
  });
  expect(later).toEqual([]);
  expect(await woken).toBe("time-out");
});

test("of many polls, those whose workers have the first ids are reserved", async () => {
  const longPolls = new LongPolls();
  const ids = Array.from({ length: 100 }, (_, n) => `w${String((n * 37) % 100).padStart(2, "0")}`);
  for (const id of ids) void longPolls.wait("ann", pollOf(id), 60_000, never).untilEnded();
  const polls = await longPolls.reserve("ann", async (reserved) => reserved);
  expect(polls.map(({ workerId }) => workerId)).toEqual([...ids].sort().slice(0, 32));
  longPolls.wake(ids);
});

test("if it is unknown whether an attempt has started, the polls are woken to look for it", async () => {
  const longPolls = new LongPolls();
  const woken = longPolls.wait("ann", pollOf("w"), 60_000, never).untilEnded();
  const failWith = (error: Error) => longPolls.reserve("ann", () => Promise.reject(error));
  await expect(failWith(new Error("refused"))).rejects.toThrow();
  expect(longPolls.workerIds).toEqual(["w"]);
  const lost = Object.assign(new Error("lost"), { code: "ECONNRESET" });
  await expect(failWith(lost)).rejects.toThrow();
  expect(await woken).toBe("assigned");
});
