import childProcess from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../../dev/stack/wait";
import { createLogger } from "../logger";
import { TableEngine } from "./engine";

/**
 * A fake reader process. The path of the file selects what it does, such as `crash` or `hang`. For
 * any other path it returns the path, its own process id and its environment.
 */
const PROGRAM = `
process.on("disconnect", () => process.exit());
if (!__filename.endsWith("silent.js")) process.send("started");
process.on("message", ({ id, path }) => {
  if (path === "crash") process.abort();
  if (path.startsWith("SIG")) return process.kill(process.pid, path);
  if (path === "exit") process.exit(1);
  if (path === "hang") return;
  if (path === "spin") for (;;);
  if (path === "interrupt") return process.send({ id, rssBytes: 1, interruption: "the disk had an error" });
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

/**
 * Reads a file. The default time-out is long: the reader process has a low priority, so on a busy
 * machine its start may take seconds.
 */
async function ask(
  path: string,
  timeoutMs = 30_000,
): Promise<[path: string, pid: number, env: object]> {
  const reading = { work: "preview", format: "csv", timeoutMs } as const;
  return JSON.parse(await engine.read({ ...reading, path, tenant: "t" }));
}

/**
 * Reads a file until the engine returns its content or refuses it. Repeats a read that failed
 * because the reader process got hardly any CPU time on a busy machine.
 */
async function untilJudged(path: string, timeoutMs: number): ReturnType<typeof ask> {
  for (;;) {
    try {
      return await ask(path, timeoutMs);
    } catch (error) {
      if (!String(error).includes("too little of its")) throw error;
    }
  }
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test("one process reads files one after the other, without the server's environment", async () => {
  const answers = await Promise.all(["slow", "b", "c"].map((path) => ask(path)));
  expect(answers.map(([path]) => path)).toEqual(["slow", "b", "c"]);
  expect(new Set(answers.map(([, pid]) => pid))).toEqual(new Set([engine.pid]));
  expect(answers[0]?.[2]).toEqual({ TZ: "UTC" });
});

/** Time-out of a test that uses `untilJudged`, which may need many tries on a busy machine. */
const UNTIL_JUDGED_MS = 300_000;

test.each([
  ["crash", 30_000, /crashed/],
  ["exit", 30_000, /crashed/],
  ["SIGUSR2", 30_000, /more memory than is allowed/],
  ["spin", 1_500, /more than 1.5 s/],
])(
  "a new process replaces one that a file made %s",
  async (path, timeoutMs, says) => {
    const [, pid] = await ask("a");
    const [refusal, next] = await Promise.allSettled([untilJudged(path, timeoutMs), ask("b")]);
    expect(refusal).toMatchObject({
      reason: { status: 422, code: "preview_failed", message: expect.stringMatching(says) },
    });
    expect(next).toMatchObject({ value: ["b", expect.any(Number), expect.anything()] });
    expect(engine.pid).not.toBe(pid);
    await waitFor("the first process to be gone", () => !isAlive(pid));
  },
  UNTIL_JUDGED_MS,
);

test.each([
  ["SIGKILL", 30_000, /ended with SIGKILL/],
  ["SIGTERM", 30_000, /ended with SIGTERM/],
  ["hang", 300, /too little of its 0.3 s of CPU time/],
  ["interrupt", 30_000, /the disk had an error/],
])(
  "an interruption by the machine is no verdict on the file: %s",
  async (path, timeoutMs, says) => {
    await ask("a");
    const [interruption, next] = await Promise.allSettled([ask(path, timeoutMs), ask("b")]);
    expect(interruption).toMatchObject({
      reason: { status: 503, code: "unavailable", message: expect.stringMatching(says) },
    });
    expect(next).toMatchObject({ value: ["b", expect.any(Number), expect.anything()] });
  },
);

test("a file that is read when its process is killed once is read again", async () => {
  const [, pid] = await ask("a");
  const reading = ask("slow");
  await sleep(50);
  process.kill(pid, "SIGKILL");
  expect(await reading).toMatchObject(["slow", expect.any(Number), expect.anything()]);
});

test("a process that ends before it has started is no verdict on the file", async () => {
  const silent = join(folder, "silent.js");
  writeFileSync(silent, PROGRAM);
  const unready = new TableEngine({ idleMs: 300, program: silent }, createLogger("silent"));
  const reading = { work: "measure", format: "csv", timeoutMs: 30_000, tenant: "t" } as const;
  await expect(unready.read({ ...reading, path: "crash" })).rejects.toMatchObject({ status: 503 });
  await unready.stop();
});

test("a process that can't be started is no verdict on the file", async () => {
  const { fork } = childProcess;
  const execPath = join(folder, "missing");
  const forking = jest
    .spyOn(childProcess, "fork")
    .mockImplementation((path, options) => fork(path, { ...(options as object), execPath }));
  try {
    await expect(ask("a")).rejects.toMatchObject({
      status: 503,
      message: expect.stringMatching(/failed with ENOENT/),
    });
  } finally {
    forking.mockRestore();
  }
});

test("a refusal is passed on, and the process continues", async () => {
  const [, pid] = await ask("a");
  await expect(ask("refuse")).rejects.toMatchObject({ status: 422, message: "no table" });
  expect((await ask("b"))[1]).toBe(pid);
});

test("a process that uses too much memory is replaced after its answer", async () => {
  const [[, pid], [, next]] = [await ask("swell"), await ask("b")];
  expect(next).not.toBe(pid);
});

test("an idle process ends, and the next file starts another", async () => {
  const [, pid] = await ask("a");
  await waitFor("the process to be gone", () => !isAlive(pid));
  expect(engine.pid).toBeUndefined();
  expect((await ask("b"))[1]).not.toBe(pid);
});

test("stop ends the process and rejects waiting reads", async () => {
  const waiting = Promise.allSettled([ask("hang"), ask("b")]);
  await sleep(300);
  const { pid = 0 } = engine;
  await engine.stop();
  expect(isAlive(pid)).toBe(false);
  const unavailable = { reason: expect.objectContaining({ status: 503 }) };
  expect(await waiting).toMatchObject([unavailable, unavailable]);
});

test("all of its threads have a lower priority than the server's", async () => {
  const [, pid] = await ask("a");
  const nice = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
  });
  expect(Math.min(...nice)).toBeGreaterThanOrEqual(constants.priority.PRIORITY_BELOW_NORMAL);
});
