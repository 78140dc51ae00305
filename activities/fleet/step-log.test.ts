import { createLogger } from "../../platform/logger";
import type { Context } from "../../services/context";
import { StepLog } from "./step-log";

let written: string;
let overflows: number;

/** The parts of a Context that StepLog needs. Collects the text that StepLog writes. */
const ctx = {
  logger: createLogger("silent"),
  pool: {
    query: async ({ values }: { values: string[] }) => {
      written += values[3];
      return { rows: [], rowCount: 1 };
    },
  },
} as unknown as Context;

const SECRET = "forge_worker_SECRET";

function open(): StepLog {
  written = "";
  overflows = 0;
  return new StepLog(ctx, { workerId: "w", run: 1, step: "script" }, [SECRET], () => {
    overflows += 1;
  });
}

test("lines are written whole and secrets redacted, however the input is split", async () => {
  const log = open();
  for (const piece of ["one\ntw", "o\n\nkey forge_work", "er_SECRET!\n\0end"]) log.add(piece);
  await log.close();
  expect(written).toBe("one\ntwo\n\nkey [redacted]!\nend\n");
});

test("an endless line is cut, never within a secret, and in linear time", async () => {
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
  expect(overflows).toBe(0);
});

test.each([
  ["a whole secret that ends like it begins", ["abcab"], "abcab"],
  ["the beginnings of two secrets", ["xy1234", "1234xy1234"], "1234xy123"],
  ["a secret with another one in it", ["A", `x${"A".repeat(30)}y`], `x${"A".repeat(30)}`],
  ["a password in a URL", [], "https://user:a-long-token-of-a-user"],
  ["a secret that is longer than a line", ["z".repeat(20_000)], "z".repeat(16 * 1024)],
])("a line that is cut after %s shows no part of it", async (_, secrets, end) => {
  const log = open();
  for (const secret of secrets) log.hide(secret);
  log.add(`${"-".repeat(16 * 1024 - end.length)}${end}more\n`);
  await log.close();
  const shown = written.replace("[redacted]", "").replace("https://", "");
  expect(shown).toMatch(/^-* … \[cut\]\n$/);
});

test("reports output beyond the limit and keeps no more of it", async () => {
  const log = open();
  for (let n = 0; n < 40; n++) log.add("z".repeat(1024 * 1024));
  await log.close();
  expect(overflows).toBeGreaterThan(0);
  expect(written.length).toBeLessThan(20 * 1024);
});
