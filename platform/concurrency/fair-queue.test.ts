import fc from "fast-check";
import { FairQueue } from "./fair-queue";

/** Work that ends when it is told to, and notes when it began. */
function pieces(turns: FairQueue) {
  const begun: string[] = [];
  let end: () => void = () => undefined;
  const bring = (group: string, name: string, signal?: AbortSignal): Promise<string> =>
    turns.take(
      group,
      () => {
        begun.push(name);
        return new Promise((resolve) => {
          end = () => resolve(name);
        });
      },
      signal,
    );
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return {
    begun,
    bring,
    async endOne() {
      end();
      await settled();
    },
  };
}

test("groups take turns, whatever one of them brings", async () => {
  const { begun, bring, endOne } = pieces(new FairQueue());
  const all = ["a1", "a2", "a3", "a4", "b1", "c1", "b2"].map((name) => bring(name[0] ?? "", name));
  for (const _ of all) await endOne();
  expect(begun).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "a4"]);
  expect(await Promise.all(all)).toHaveLength(7);
});

test("with several at once, one group's slow pieces leave places for others", async () => {
  const turns = new FairQueue(4, 3);
  const { begun, bring, endOne } = pieces(turns);
  const slow = Array.from({ length: 6 }, (_, n) => bring("slow", `s${n}`));
  expect(begun).toEqual(["s0", "s1", "s2"]);
  const quick = [bring("quick", "q0"), bring("quick", "q1"), bring("other", "o0")];
  expect(begun).toEqual(["s0", "s1", "s2", "q0"]);
  // The place of the quick one goes to those that wait for it, while the slow ones stay.
  await endOne();
  expect(begun.slice(4)).toEqual(["q1"]);
  await endOne();
  expect(begun.slice(5)).toEqual(["o0"]);
  expect([turns.waitingOf("slow"), turns.waitingOf("quick")]).toEqual([3, 0]);
  void slow;
  await Promise.all(quick.slice(0, 2));
});

test("what is taken back before its turn never begins, and holds nobody up", async () => {
  const turns = new FairQueue();
  const { begun, bring, endOne } = pieces(turns);
  const first = bring("a", "a1");
  const gone = new AbortController();
  const taken = bring("b", "b1", gone.signal);
  const last = bring("c", "c1");
  gone.abort(new Error("hung up"));
  await expect(taken).rejects.toThrow("hung up");
  expect(turns.waitingOf("b")).toBe(0);
  await endOne();
  await endOne();
  expect([await first, await last, begun]).toEqual(["a1", "c1", ["a1", "c1"]]);
  await expect(bring("b", "b2", gone.signal)).rejects.toThrow("hung up");
});

test("no two at once, none lost, and nobody waits for more than one piece of each other group", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(4), { minLength: 1, maxLength: 30 }), async (groups) => {
      const turns = new FairQueue();
      let under = 0;
      const order: number[] = [];
      await Promise.all(
        groups.map((group) =>
          turns
            .take(String(group), async () => {
              under += 1;
              expect(under).toBe(1);
              order.push(group);
              await Promise.resolve();
              under -= 1;
              if (order.length % 7 === 0) throw new Error("a piece that fails");
            })
            .catch(() => undefined),
        ),
      );
      expect(order).toHaveLength(groups.length);
      // Between two pieces of one group that both waited comes at most one of each other.
      for (const [at, group] of order.entries()) {
        const next = order.indexOf(group, at + 1);
        if (at === 0 || next < 0) continue;
        const between = order.slice(at + 1, next);
        expect(new Set(between).size).toBe(between.length);
      }
    }),
  );
});
