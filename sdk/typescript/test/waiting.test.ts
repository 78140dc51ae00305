import { type ForgeError, WaitTimeoutError } from "../src/index.ts";
import { FakeForge, job, json, refusal } from "./fake-forge.ts";

let server: FakeForge;
let isStopped: boolean;

beforeEach(async () => {
  isStopped = false;
  server = await new FakeForge().start();
});

const stop = async (): Promise<void> => {
  if (!isStopped) await server.stop();
  isStopped = true;
};

afterEach(stop);

const isEvents = ({ path }: { path: string }): boolean => path.endsWith("/events");
const HEARD = {
  body: 'id: 1\nevent: status\ndata: {"job_id": "job_1", "status": "running"}\n\n',
  headers: { "Content-Type": "text/event-stream" },
  staysOpen: true,
};

/** Returns the error message of a wait with a time-out of 0.5 s. Fails if the wait takes 2 s. */
async function timeoutOf(wait: (options: { timeout: number }) => Promise<unknown>) {
  const began = performance.now();
  const error = await wait({ timeout: 0.5 }).then(
    () => undefined,
    (reason: ForgeError) => reason,
  );
  expect(error).toBeInstanceOf(WaitTimeoutError);
  expect(performance.now() - began).toBeGreaterThan(490);
  expect(performance.now() - began).toBeLessThan(2_000);
  return error?.message;
}

test.each([
  ["the port is closed", "closed"],
  ["the server does not respond", "silent"],
  ["all requests are refused with a long Retry-After", "refused"],
])("a wait keeps its time-out if %s", async (_, how) => {
  const client = server.client();
  server.script = () => (how === "silent" ? how : refusal(503, "down", { "Retry-After": "3600" }));
  if (how === "closed") await stop();
  const jobs = await timeoutOf((options) => client.wait("job_1", options));
  expect(jobs).toBe("job_1 has an unknown status after 0.5 s; it goes on");
  const pipelines = await timeoutOf((options) => client.pipelines.wait("pipe_1", options));
  expect(pipelines).toBe("pipe_1 has an unknown status after 0.5 s; it goes on");
});

test("a wait keeps its time-out if the server stops, and reports the last status", async () => {
  const client = server.client();
  server.script = (asked) => (isEvents(asked) ? HEARD : job({ status: "running" }));
  const jobs = await timeoutOf((options) => client.wait("job_1", { ...options, onEvent: stop }));
  expect(jobs).toBe("job_1 is running after 0.5 s; it goes on");
});

test("a wait keeps its time-out if events begin late and then stop", async () => {
  let questions = 0;
  server.script = (asked) => {
    if (isEvents(asked)) return { ...HEARD, body: ": hello\n\n" };
    questions += 1;
    return questions > 1 ? "silent" : json({ job_id: "job_1", status: "pending" });
  };
  const jobs = await timeoutOf((options) => server.client().wait("job_1", options));
  expect(jobs).toBe("job_1 is pending after 0.5 s; it goes on");
});

test("a job that ends at the deadline is still recognized", async () => {
  let state = "running";
  server.script = (asked) => (isEvents(asked) ? HEARD : job({ status: state }));
  const onEvent = (): void => {
    state = "completed";
  };
  const found = await server.client().wait("job_1", { timeout: 0.3, onEvent });
  expect(found.status).toBe("completed");
});
