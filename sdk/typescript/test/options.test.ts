import { pause } from "../src/pause.ts";
import { FakeForge, job } from "./fake-forge.ts";

let server: FakeForge;

beforeEach(async () => {
  server = await new FakeForge().start();
});

afterEach(async () => await server.stop());

test.each([Number.NaN, 0, -1, "5"])("%p is no time, and the option is named", async (wrong) => {
  const time = wrong as number;
  const client = server.client();
  const tells = (option: string) => `${option} must be more than 0`;
  expect(() => server.client({ timeoutMs: time })).toThrow(tells("timeoutMs"));
  await expect(client.service.ping({ timeoutMs: time })).rejects.toThrow(tells("timeoutMs"));
  for (const waits of [client, client.pipelines]) {
    await expect(waits.wait("x", { timeout: time })).rejects.toThrow(tells("timeout"));
    await expect(waits.wait("x", { pollInterval: time })).rejects.toThrow(tells("pollInterval"));
    await expect(waits.wait("x", { timeoutMs: time })).rejects.toThrow(tells("timeoutMs"));
  }
  expect(server.asked).toHaveLength(0);
});

test("maxRetries that is no number would be without an end", async () => {
  const { service } = server.client();
  await expect(service.ping({ maxRetries: Number.NaN })).rejects.toThrow("maxRetries must not");
  expect(server.asked).toHaveLength(0);
});

test.each([2 ** 31, Number.POSITIVE_INFINITY])("%p ms are not over at once", async (ms) => {
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
