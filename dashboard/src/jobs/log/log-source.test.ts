import { LogSource } from "./log-source";
import type { LogState } from "./protocol";

/** How a log is asked for: its end first, which tells its length too. */
const URL = "http://forge/logs";
const lines = (count: number): string =>
  Array.from({ length: count }, (_, n) => `line ${n + 1}\n`).join("");

const realFetch = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = realFetch;
});

/** Answers ranges of a text as the server does. @returns the ranges that were asked for. */
function serve(text: string): (string | null)[] {
  const asked: (string | null)[] = [];
  globalThis.fetch = async (_url, init) => {
    const range = new Headers(init?.headers).get("range");
    asked.push(range);
    const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
    if (text === "")
      return new Response("", { status: 416, headers: { "content-range": "bytes */0" } });
    const start = first === "" ? Math.max(0, text.length - Number(last)) : Number(first);
    const end = first === "" || last === "" ? text.length - 1 : Number(last);
    const headers = { "content-range": `bytes ${start}-${end}/${text.length}` };
    return new Response(text.slice(start, end + 1), { status: 206, headers });
  };
  return asked;
}

async function read(
  text: string,
): Promise<{ asked: (string | null)[]; states: LogState[]; log: LogSource }> {
  const asked = serve(text);
  const states: LogState[] = [];
  const log = await new Promise<LogSource>((resolve) => {
    const source: LogSource = new LogSource(URL, "key", (state) => {
      states.push(state);
      if (!state.isTail && state.loaded === text.length) resolve(source);
    });
  });
  return { asked, states, log };
}

test("a small log comes with one request", async () => {
  const { asked, log } = await read(lines(100));
  expect(asked).toEqual(["bytes=-65536"]);
  expect([log.index.lines, log.index.line(99)]).toEqual([100, "line 100"]);
});

test("of a large one the end is there first, then all of it, and no byte is asked for twice", async () => {
  const text = lines(50_000);
  const { asked, states, log } = await read(text);
  expect(asked).toEqual(["bytes=-65536", `bytes=0-${text.length - 65_536 - 1}`]);
  expect(states[0]).toMatchObject({ isTail: true, total: text.length, error: null });
  expect(log.index.lines).toBe(50_000);
  expect([0, 25_000, 49_999].map((at) => log.index.line(at))).toEqual([
    ...["line 1", "line 25001", "line 50000"],
  ]);
});

test("one without a byte is no error", async () => {
  const { asked, states } = await read("");
  expect(asked).toEqual(["bytes=-65536"]);
  expect(states.at(-1)).toMatchObject({ lines: 0, total: 0, error: null });
});

test("while a read is under way there is no second one: no line comes twice", async () => {
  jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask", "setImmediate"] });
  try {
    const { log } = await read(lines(3));
    const asked = serve(lines(4));
    const answer = globalThis.fetch;
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    globalThis.fetch = async (...call) => {
      const response = await answer(...call);
      await held;
      return response;
    };
    // The tab is hidden and shown again, and the job ends, while the server is slow.
    for (const isLive of [true, false, true, false]) {
      log.setLive(isLive);
      await jest.advanceTimersByTimeAsync(1);
    }
    expect(asked).toEqual(["bytes=20-"]);
    release();
    // It is read once more, as lines may have come since.
    while (asked.length < 2) {
      await jest.advanceTimersByTimeAsync(1);
      await new Promise(setImmediate);
    }
    expect(log.index.lines).toBe(4);
  } finally {
    jest.useRealTimers();
  }
});
