import { LogSource } from "./log-source";
import type { LogState } from "./protocol";

// Tests the requests that a LogSource sends. The first one asks for the end of the log; its
// response also has the total length.

const URL = "http://forge/logs";
const lines = (count: number): string =>
  Array.from({ length: count }, (_, n) => `line ${n + 1}\n`).join("");

const realFetch = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = realFetch;
});

/** Makes `fetch` return ranges of the text, like the server. @returns the requested ranges. */
function serve(text: string): (string | null)[] {
  const requested: (string | null)[] = [];
  globalThis.fetch = async (_url, init) => {
    const range = new Headers(init?.headers).get("range");
    requested.push(range);
    const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
    if (text === "")
      return new Response("", { status: 416, headers: { "content-range": "bytes */0" } });
    const start = first === "" ? Math.max(0, text.length - Number(last)) : Number(first);
    const end = first === "" || last === "" ? text.length - 1 : Number(last);
    const headers = { "content-range": `bytes ${start}-${end}/${text.length}` };
    return new Response(text.slice(start, end + 1), { status: 206, headers });
  };
  return requested;
}

async function read(
  text: string,
): Promise<{ requested: (string | null)[]; states: LogState[]; log: LogSource }> {
  const requested = serve(text);
  const states: LogState[] = [];
  const log = await new Promise<LogSource>((resolve) => {
    const source: LogSource = new LogSource(URL, "key", (state) => {
      states.push(state);
      if (!state.isTail && state.loaded === text.length) resolve(source);
    });
  });
  return { requested, states, log };
}

test("a small log comes with one request", async () => {
  const { requested, log } = await read(lines(100));
  expect(requested).toEqual(["bytes=-65536"]);
  expect([log.index.lines, log.index.line(99)]).toEqual([100, "line 100"]);
});

test("of a large log the end is read first, then the rest, and no byte twice", async () => {
  const text = lines(50_000);
  const { requested, states, log } = await read(text);
  expect(requested).toEqual(["bytes=-65536", `bytes=0-${text.length - 65_536 - 1}`]);
  expect(states[0]).toMatchObject({ isTail: true, total: text.length, error: null });
  expect(log.index.lines).toBe(50_000);
  expect([0, 25_000, 49_999].map((at) => log.index.line(at))).toEqual([
    ...["line 1", "line 25001", "line 50000"],
  ]);
});

test("an empty log is no error", async () => {
  const { requested, states } = await read("");
  expect(requested).toEqual(["bytes=-65536"]);
  expect(states.at(-1)).toMatchObject({ lines: 0, total: 0, error: null });
});

test("reads run one at a time, so that no line is read twice", async () => {
  jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask", "setImmediate"] });
  try {
    const { log } = await read(lines(3));
    const requested = serve(lines(4));
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
    // While the server is slow, the tab is hidden and shown again, and the job ends.
    for (const isLive of [true, false, true, false]) {
      log.setLive(isLive);
      await jest.advanceTimersByTimeAsync(1);
    }
    expect(requested).toEqual(["bytes=20-"]);
    release();
    // Reads once more after the slow response, because lines may have arrived since.
    while (requested.length < 2) {
      await jest.advanceTimersByTimeAsync(1);
      await new Promise(setImmediate);
    }
    expect(log.index.lines).toBe(4);
  } finally {
    jest.useRealTimers();
  }
});
