import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../../dev/stack/wait";
import { createLogger } from "../logger";
import { TableEngine } from "./engine";

/** Does what the file's name says; else answers with its name, its own process id, and its environment. */
const PROGRAM = `
process.on("disconnect", () => process.exit());
process.on("message", ({ id, path }) => {
  if (path === "crash") process.abort();
  if (path === "hang") return;
  if (path === "refuse") return process.send({ id, rssBytes: 1, failure: "no table" });
  const answer = () => process.send({ id, rssBytes: path === "swell" ? 1e9 : 1, result: JSON.stringify([path, process.pid, process.env]) });
  setTimeout(answer, path === "slow" ? 200 : 0);
});`;

let folder: string;
let program: string;
let engine: TableEngine;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-engine-"));
  program = join(folder, "program.js");
  writeFileSync(program, PROGRAM);
});

beforeEach(() => {
  engine = new TableEngine({ idleMs: 300, program }, createLogger("silent"));
});

afterEach(async () => {
  await engine.stop();
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** It gives way to everything else on the machine, so on a busy one its start may take seconds. */
async function ask(
  path: string,
  timeoutMs = 30_000,
): Promise<[path: string, pid: number, env: object]> {
  const reading = { work: "preview", format: "csv", timeoutMs } as const;
  return JSON.parse(await engine.read({ ...reading, path, tenant: "t" }));
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test("one process answers all, one after the other, and knows nothing of the server's", async () => {
  const answers = await Promise.all(["slow", "b", "c"].map((path) => ask(path)));
  expect(answers.map(([path]) => path)).toEqual(["slow", "b", "c"]);
  expect(new Set(answers.map(([, pid]) => pid))).toEqual(new Set([engine.pid]));
  expect(answers[0]?.[2]).toEqual({ TZ: "UTC" });
});

test.each([
  ["crash", 30_000, /crashed/],
  ["hang", 1_500, /more than 1.5 s/],
])("after a file that makes it %s comes another process", async (path, timeoutMs, says) => {
  const [, pid] = await ask("a");
  const [refusal, next] = await Promise.allSettled([ask(path, timeoutMs), ask("b")]);
  expect(refusal).toMatchObject({
    reason: { status: 422, code: "preview_failed", message: expect.stringMatching(says) },
  });
  expect(next).toMatchObject({ value: ["b", expect.any(Number), expect.anything()] });
  expect(engine.pid).not.toBe(pid);
  await waitFor("the first process to be gone", () => !isAlive(pid));
});

test("what it refuses is said, and it goes on", async () => {
  const [, pid] = await ask("a");
  await expect(ask("refuse")).rejects.toMatchObject({ status: 422, message: "no table" });
  expect((await ask("b"))[1]).toBe(pid);
});

test("a process that has swollen is replaced, after its answer", async () => {
  const [[, pid], [, next]] = [await ask("swell"), await ask("b")];
  expect(next).not.toBe(pid);
});

test("without work it ends, and with the next it starts", async () => {
  const [, pid] = await ask("a");
  await waitFor("the process to be gone", () => !isAlive(pid));
  expect(engine.pid).toBeUndefined();
  expect((await ask("b"))[1]).not.toBe(pid);
});

test("a stop ends it, whatever it does, and those who wait", async () => {
  const waiting = Promise.allSettled([ask("hang"), ask("b")]);
  await sleep(300);
  const { pid = 0 } = engine;
  await engine.stop();
  expect(isAlive(pid)).toBe(false);
  const unavailable = { reason: expect.objectContaining({ status: 503 }) };
  expect(await waiting).toMatchObject([unavailable, unavailable]);
});

test("all of its threads give way to the server's", async () => {
  const [, pid] = await ask("a");
  const nice = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
  });
  expect(Math.min(...nice)).toBeGreaterThanOrEqual(constants.priority.PRIORITY_BELOW_NORMAL);
});
