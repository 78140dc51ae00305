// Tests the SDK in Node with the restrictions of a browser, set by the flags of `platform`.
import { platform } from "../src/platform/node.ts";
import { FakeForge, job, json } from "./fake-forge.ts";

let server: FakeForge;

beforeEach(async () => {
  server = await new FakeForge().start();
});

afterEach(async () => {
  jest.restoreAllMocks();
  await server.stop();
});

const isEvents = ({ path }: { path: string }): boolean => path.endsWith("/events");

const IDS = ["a", "b", "c", "d", "e", "f", "g"];

/** Calls `wait` for several jobs that never end. Counts the polls and event streams of each job. */
function waitForAll() {
  const asked = new Map<string, number>();
  const streams = new Map<string, number>();
  server.script = (question) => {
    const id = question.path.split("/")[3] as string;
    const counts = isEvents(question) ? streams : asked;
    counts.set(id, (counts.get(id) ?? 0) + 1);
    const headers = { "Content-Type": "text/event-stream" };
    if (isEvents(question)) return { body: ": hello\n\n", headers, staysOpen: true };
    return job({ job_id: id, status: "running" });
  };
  const controllers = IDS.map(() => new AbortController());
  const waits = IDS.map((id, n) =>
    server.client().wait(id, { pollInterval: 0.02, signal: controllers[n]?.signal }),
  );
  const outcomes = Promise.allSettled(waits);
  const giveUp = async (): Promise<void> => {
    for (const each of controllers) each.abort();
    await outcomes;
    await until(() => server.open === 0);
  };
  const giveUpOne = (id: string): void => controllers[IDS.indexOf(id)]?.abort();
  return { asked, streams, giveUpOne, giveUp };
}

test("a limited number of waits listen; the others poll until a connection is free", async () => {
  jest.replaceProperty(platform, "maxStreams", 2);
  const { asked, streams, giveUpOne, giveUp } = waitForAll();
  const others = (): string[] => IDS.filter((id) => !streams.has(id));
  const most = (): number => Math.max(...others().map((id) => asked.get(id) ?? 0));
  await until(() => others().every((id) => (asked.get(id) ?? 0) >= 14));
  expect([...streams.values()]).toEqual([1, 1]);
  const before = most();
  giveUpOne([...streams.keys()][0] as string);
  await until(() => streams.size === 3);
  expect(most()).toBeLessThan(before + 5);
  await giveUp();
});

test("in Node all waits listen", async () => {
  const { streams, giveUp } = waitForAll();
  await until(() => streams.size === IDS.length);
  await giveUp();
});

test("the time-out of an upload without progress events depends on its size", async () => {
  jest.replaceProperty(platform, "streamsUploads", false);
  const timers = jest.spyOn(globalThis, "setTimeout");
  server.script = () => json({ dataset_id: "ds_2" }, 201);
  const content = new Blob([new Uint8Array(1_000_000)]);
  await server.client().datasets.upload(content, "x", { format: "csv" });
  expect(timers.mock.calls.map(([, ms]) => ms)).toContain(310_000);
});

test("the time-out of an upload without progress events is at least the given one", async () => {
  jest.replaceProperty(platform, "streamsUploads", false);
  server.script = () => "silent";
  const content = new Blob([new Uint8Array(1_000_000)]);
  const options = { format: "csv", timeoutMs: 50, maxRetries: 0 } as const;
  const upload = server.client().datasets.upload(content, "x", options);
  await expect(upload).rejects.toThrow("no response within 0.05 s");
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}
