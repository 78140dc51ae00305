import type { Context } from "../context";
import { DatabaseMetrics } from "./database-metrics";

test("a slow reading is not overlapped by another, and is read again after the cache's time", async () => {
  let nowMs = 0;
  let queries = 0;
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const pool = {
    async query() {
      queries += 1;
      await answered;
      return { rows: [], rowCount: 0 };
    },
  };
  const ctx = { clock: { nowMs: () => nowMs }, pool } as unknown as Context;
  const metrics = new DatabaseMetrics(ctx);
  const first = metrics.text();
  const begun = queries;
  nowMs = 60_000;
  expect(metrics.text()).toBe(first);
  expect(queries).toBe(begun);
  answer();
  expect(await first).toContain("forge_queue_jobs");
  expect(metrics.text()).toBe(first);
  nowMs += 6_000;
  expect(metrics.text()).not.toBe(first);
});
