import { Unavailable } from "../../core/errors";
import { createConnectionQueues } from "./connection-queues";

test("requests wait in a long queue that makes progress", async () => {
  const { user } = createConnectionQueues(20, 800);
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      user.run("many", async () => {
        await new Promise((resolve) => setTimeout(resolve, 60));
        return n;
      }),
    ),
  );
  expect(answers).toHaveLength(60);
});

test("waiting requests are refused when the database does not respond", async () => {
  const { user, worker } = createConnectionQueues(20, 100);
  let release: () => void = () => undefined;
  const frozen = new Promise<void>((resolve) => {
    release = resolve;
  });
  const hanging = Array.from({ length: 50 }, () => user.run("slow", () => frozen));
  const running = Promise.allSettled(hanging.slice(0, 6));
  const waiting = Promise.allSettled(hanging.slice(6));
  const begun = performance.now();
  await expect(user.run("slow", async () => "late")).rejects.toBeInstanceOf(Unavailable);
  expect(performance.now() - begun).toBeLessThan(1_000);
  // Wait for all queued requests, because they may be refused at different times. Each request
  // checks at an interval whether the queue is stalled. If a check comes just before the stall, the
  // request is refused at its next check.
  const refused = (await waiting).filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(50 - 6);
  expect(await user.run("other", async () => "answered")).toBe("answered");
  expect(await worker.run("slow", async () => "of its worker")).toBe("of its worker");
  release();
  expect((await running).map(({ status }) => status)).toEqual(Array(6).fill("fulfilled"));
  expect(await user.run("slow", async () => "again")).toBe("again");
});

const GONE = Object.assign(new Error("gone"), { code: "ECONNREFUSED" });

test("the first failure after a while without requests is no stall", async () => {
  const { user } = createConnectionQueues(20, 2_000);
  await expect(user.run("one", () => Promise.reject(GONE))).rejects.toBe(GONE);
  expect(user.isStalled).toBe(false);
});

test("a request that would begin when others have just timed out is refused", async () => {
  const { user } = createConnectionQueues(20, 100);
  let fail: () => void = () => undefined;
  const frozen = new Promise<void>((_, reject) => {
    fail = () => reject(GONE);
  });
  const hanging = Promise.allSettled(
    Array.from({ length: 6 }, () => user.run("slow", () => frozen)),
  );
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(user.isStalled).toBe(true);
  const waiting = user.run("slow", async () => "late");
  fail();
  await expect(waiting).rejects.toBeInstanceOf(Unavailable);
  await hanging;
  expect(await user.run("slow", async () => "again")).toBe("again");
});
