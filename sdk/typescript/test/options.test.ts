import { ForgeError } from "../src/index.ts";
import { pause } from "../src/pause.ts";
import { FakeForge, job } from "./fake-forge.ts";

let server: FakeForge;

beforeEach(async () => {
  server = await new FakeForge().start();
});

afterEach(async () => await server.stop());

test.each([Number.NaN, 0, -1, "5"])(
  "%p is an invalid time, and the error names the option",
  async (wrong) => {
    const time = wrong as number;
    const client = server.client();
    const messageFor = (option: string) => `${option} must be more than 0`;
    expect(() => server.client({ timeoutMs: time })).toThrow(messageFor("timeoutMs"));
    await expect(client.service.ping({ timeoutMs: time })).rejects.toThrow(messageFor("timeoutMs"));
    for (const waits of [client, client.pipelines]) {
      await expect(waits.wait("x", { timeout: time })).rejects.toThrow(messageFor("timeout"));
      await expect(waits.wait("x", { pollInterval: time })).rejects.toThrow(
        messageFor("pollInterval"),
      );
      await expect(waits.wait("x", { timeoutMs: time })).rejects.toThrow(messageFor("timeoutMs"));
    }
    expect(server.asked).toHaveLength(0);
  },
);

test("NaN as maxRetries is refused: it would mean no limit", async () => {
  const { service } = server.client();
  await expect(service.ping({ maxRetries: Number.NaN })).rejects.toThrow("maxRetries must not");
  expect(server.asked).toHaveLength(0);
});

test.each([2 ** 31, Number.POSITIVE_INFINITY])("%p ms do not end immediately", async (ms) => {
  server.script = ({ path }) => (path.includes("jobs") ? job({ status: "completed" }) : undefined);
  const options = { timeoutMs: ms, maxRetries: 0, timeout: ms, pollInterval: ms };
  let answer = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const slowly: typeof fetch = async (...given) => {
    const [, { signal } = {}] = given;
    await Promise.race([held, aborted(signal)]);
    return await fetch(...given);
  };
  const client = server.client({ fetch: slowly });
  const [pinged, waited] = [client.jobs.get("job_1", options), client.wait("job_1", options)];
  const paused = pause(ms, AbortSignal.timeout(60)).catch(({ name }: Error) => name);
  expect(await paused).toBe("TimeoutError");
  answer();
  expect((await pinged).status).toBe("completed");
  expect((await waited).status).toBe("completed");
});

async function aborted(signal: AbortSignal | null | undefined): Promise<never> {
  return await new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason));
  });
}

test("values that JSON or a URL can't represent are named and not sent", async () => {
  const client = server.client();
  const loop: Record<string, unknown> = {};
  loop.again = { loop };
  const wrong: [unknown, string][] = [
    [{ lr: Number.NaN }, "params.lr is NaN"],
    [{ steps: [1, Number.POSITIVE_INFINITY] }, "params.steps[1] is Infinity"],
    [{ a: { b: 10n } }, "params.a.b is a BigInt"],
    [{ at: new Date(Number.NaN) }, "params.at is an invalid date"],
    [loop, "params.again.loop contains itself"],
  ];
  for (const [given, text] of wrong) {
    const params = given as Record<string, unknown>;
    await expect(client.train({ model: "m", params })).rejects.toThrow(text);
    await expect(client.deployments.ask("d", "x", { params })).rejects.toThrow(text);
  }
  await expect(client.train({ epochs: Number.NaN })).rejects.toBeInstanceOf(ForgeError);
  await expect(client.jobs.list({ pageSize: Number.NaN }).toArray()).rejects.toThrow("limit must");
  const date = new Date(Number.NaN);
  const dated = client.jobs.list({ created_after: date }).toArray();
  await expect(dated).rejects.toThrow("created_after is an invalid date");
  for (const path of ["a/\ud800", "\udc00b"]) {
    await expect(client.deployments.ask("d", path)).rejects.toThrow("is not a valid path below");
  }
  expect(server.asked).toHaveLength(0);
});

test("valid JSON values are sent unchanged", async () => {
  server.script = () => job();
  const twice = { a: null, b: "\u00f6", c: [new Date(0), true, -1.5e300] };
  await server.client().train({ model: "m", params: { twice, again: [twice] } });
  const told = { a: null, b: "\u00f6", c: ["1970-01-01T00:00:00.000Z", true, -1.5e300] };
  const { params } = JSON.parse(String(server.asked[0]?.body));
  expect(params).toEqual({ twice: told, again: [told] });
});
