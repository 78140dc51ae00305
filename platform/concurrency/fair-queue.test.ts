import fc from "fast-check";
import { FairQueue } from "./fair-queue";

/** Work items that record their start, and end only when the test says so. */
function items(queue: FairQueue) {
  const begun: string[] = [];
  let end: () => void = () => undefined;
  const add = (group: string, name: string, signal?: AbortSignal): Promise<string> =>
    queue.run(
      group,
      () => {
        begun.push(name);
        return new Promise((resolve) => {
          end = () => resolve(name);
        });
      },
      signal,
    );
  const flushed = () => new Promise((resolve) => setImmediate(resolve));
  return {
    begun,
    add,
    async endOne() {
      end();
      await flushed();
    },
  };
}

test("groups are served round-robin, however many items one of them has", async () => {
  const { begun, add, endOne } = items(new FairQueue());
  const all = ["a1", "a2", "a3", "a4", "b1", "c1", "b2"].map((name) => add(name[0] ?? "", name));
  for (const _ of all) await endOne();
  expect(begun).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "a4"]);
  expect(await Promise.all(all)).toHaveLength(7);
});

test("slow items of one group leave slots for other groups", async () => {
  const queue = new FairQueue(4, 3);
  const { begun, add, endOne } = items(queue);
  const slow = Array.from({ length: 6 }, (_, n) => add("slow", `s${n}`));
  expect(begun).toEqual(["s0", "s1", "s2"]);
  const quick = [add("quick", "q0"), add("quick", "q1"), add("other", "o0")];
  expect(begun).toEqual(["s0", "s1", "s2", "q0"]);
  // When q0 ends, its slot goes to q1 and not to the group `slow`, which is at its limit.
  await endOne();
  expect(begun.slice(4)).toEqual(["q1"]);
  await endOne();
  expect(begun.slice(5)).toEqual(["o0"]);
  expect([queue.waitingOf("slow"), queue.waitingOf("quick")]).toEqual([3, 0]);
  void slow;
  await Promise.all(quick.slice(0, 2));
});

test("an item aborted while it waits never begins, and does not block others", async () => {
  const queue = new FairQueue();
  const { begun, add, endOne } = items(queue);
  const first = add("a", "a1");
  const gone = new AbortController();
  const aborted = add("b", "b1", gone.signal);
  const last = add("c", "c1");
  gone.abort(new Error("hung up"));
  await expect(aborted).rejects.toThrow("hung up");
  expect(queue.waitingOf("b")).toBe(0);
  await endOne();
  await endOne();
  expect([await first, await last, begun]).toEqual(["a1", "c1", ["a1", "c1"]]);
  await expect(add("b", "b2", gone.signal)).rejects.toThrow("hung up");
});

test("runs one item at a time, loses none, and interleaves at most one item of each other group", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(4), { minLength: 1, maxLength: 30 }), async (groups) => {
      const queue = new FairQueue();
      let running = 0;
      const order: number[] = [];
      await Promise.all(
        groups.map((group) =>
          queue
            .run(String(group), async () => {
              running += 1;
              expect(running).toBe(1);
              order.push(group);
              await Promise.resolve();
              running -= 1;
              if (order.length % 7 === 0) throw new Error("an item that fails");
            })
            .catch(() => undefined),
        ),
      );
      expect(order).toHaveLength(groups.length);
      // Between two consecutive items of a group, each other group runs at most one item. Skip the
      // very first item, because it did not have to wait.
      for (const [at, group] of order.entries()) {
        const next = order.indexOf(group, at + 1);
        if (at === 0 || next < 0) continue;
        const between = order.slice(at + 1, next);
        expect(new Set(between).size).toBe(between.length);
      }
    }),
  );
});
