import { createLogger } from "../../platform/logger";
import type { Context } from "../../services/context";
import { StepLog } from "./step-log";

let written: string;
let floods: number;

/** As much of a Context as a log needs: what is written is kept here. */
const ctx = {
  logger: createLogger("silent"),
  pool: {
    query: async ({ values }: { values: string[] }) => {
      written += values[2];
      return { rows: [], rowCount: 1 };
    },
  },
} as unknown as Context;

const SECRET = "forge_worker_SECRET";

function open(): StepLog {
  written = "";
  floods = 0;
  return new StepLog(ctx, "w", "script", [SECRET], () => {
    floods += 1;
  });
}

test("lines come out whole, in whatever pieces they come, and secrets never", async () => {
  const log = open();
  for (const piece of ["one\ntw", "o\n\nkey forge_work", "er_SECRET!\n\0end"]) log.add(piece);
  await log.close();
  expect(written).toBe("one\ntwo\n\nkey [redacted]!\nend\n");
});

test("a line without an end is cut, at no cost that grows with it, and not within a secret", async () => {
  const log = open();
  const began = performance.now();
  log.add("x".repeat(16 * 1024 - 10) + SECRET);
  for (let n = 0; n < 20_000; n++) log.add("y".repeat(1_000));
  expect(performance.now() - began).toBeLessThan(2_000);
  log.add("\nnext\n");
  await log.close();
  const [line = "", next] = written.split("\n");
  expect(next).toBe("next");
  expect(line).toMatch(/^x+ … \[cut\]$/);
  expect(floods).toBe(0);
});

test("a machine that says more than anybody would read is told of, and no more is kept", async () => {
  const log = open();
  for (let n = 0; n < 40; n++) log.add("z".repeat(1024 * 1024));
  await log.close();
  expect(floods).toBeGreaterThan(0);
  expect(written.length).toBeLessThan(20 * 1024);
});
