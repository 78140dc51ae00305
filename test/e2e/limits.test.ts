import { connect, type Socket } from "node:net";
import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";

let forge: Forge;
let otherUrl: string;

const PER_MINUTE = 600;
const BURST = 100;

beforeAll(async () => {
  forge = await startForge({
    FORGE_RATE_LIMIT_PER_MINUTE: String(PER_MINUTE),
    FORGE_RATE_LIMIT_BURST: String(BURST),
    FORGE_CORS_ORIGINS: "https://lab.example, https://other.example",
  });
  otherUrl = await forge.stack.startAnotherServer();
});

afterAll(async () => {
  await forge?.stop();
});

const newKey = async (scope = "user"): Promise<string> =>
  (await forge.admin.post<{ api_key: { key: string } }>("/api/admin/users", { name: scope }))
    .api_key.key;

test("a key's rate limit holds across all processes", async () => {
  const key = await newKey();
  const apis = [forge.stack.apiUrl, otherUrl].map((url) => new ApiClient(url, key));
  const began = performance.now();
  const answers = await Promise.all(
    Array.from({ length: 600 }, (_, n) => apis[n % 2]?.call("GET", "/api/billing/rates")),
  );
  const seconds = (performance.now() - began) / 1000;
  const admitted = answers.filter((answer) => answer?.status === 200).length;
  const refused = answers.filter((answer) => answer?.status === 429);
  expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([200, 429]));
  // A process can't use tokens that the other process has leased. Each of the two processes may
  // have up to 5 leased tokens left (BURST / 20).
  expect(admitted).toBeGreaterThanOrEqual(BURST - 10);
  expect(admitted).toBeLessThanOrEqual(BURST + Math.ceil((seconds * PER_MINUTE) / 60) + 1);
  const [first] = refused;
  expect(first?.body).toMatchObject({ error: { code: "rate_limited" } });
  expect(Number(first?.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(first?.headers.get("ratelimit-limit")).toBe(String(BURST));
  expect(first?.headers.get("ratelimit-remaining")).toBe("0");
  // Other keys are not affected.
  const other = new ApiClient(forge.stack.apiUrl, await newKey());
  expect((await other.call("GET", "/api/billing/rates")).status).toBe(200);
});

test("after a pause it is served again", async () => {
  const api = new ApiClient(forge.stack.apiUrl, await newKey());
  await Promise.all(Array.from({ length: 300 }, () => api.call("GET", "/api/billing/rates")));
  // Repeat the request until it is refused, because a token may have been added in the meantime.
  const refused = await waitFor(
    "a refusal",
    async () => {
      const answer = await api.call("GET", "/api/billing/rates");
      return answer.status === 429 && answer;
    },
    // Send requests faster than tokens are added.
    { everyMs: 5 },
  );
  const pauseS = Number(refused.headers.get("retry-after") ?? 0);
  await new Promise((resolve) => setTimeout(resolve, pauseS * 1000));
  expect((await api.call("GET", "/api/billing/rates")).status).toBe(200);
});

test("a client that ignores refusals waits for them, and no other client waits", async () => {
  const anonymous = new ApiClient(forge.stack.apiUrl, "no key");
  const other = new ApiClient(forge.stack.apiUrl, await newKey());
  const began = performance.now();
  const passed = (): number => performance.now() - began;
  const refused = Promise.all(
    Array.from({ length: 100 }, async () => {
      const { status } = await anonymous.call("GET", "/api/jobs");
      return { status, ms: passed() };
    }),
  );
  expect((await other.call("GET", "/api/jobs")).status).toBe(200);
  const servedMs = passed();
  const refusals = await refused;
  expect(new Set(refusals.map(({ status }) => status))).toEqual(new Set([403]));
  // The server sends 20 refusals at once, and 20 more within a second. It delays the other 60 by
  // one to two seconds.
  const slow = refusals.filter(({ ms }) => ms >= 900);
  expect(slow.length).toBeGreaterThanOrEqual(60);
  expect(servedMs).toBeLessThan(Math.max(...slow.map(({ ms }) => ms)));
});

test("worker endpoints are not limited by the minute", async () => {
  const worker = await forge.worker("busy-bee");
  const beats = await Promise.all(Array.from({ length: 300 }, () => worker.heartbeat()));
  expect(beats).toHaveLength(300);
});

/** Opens a raw connection. `answer` resolves with everything received until it was closed. */
function openSocket(url: string): { socket: Socket; answer: Promise<string> } {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const parts: Buffer[] = [];
  socket.on("data", (part) => parts.push(part));
  socket.on("error", () => undefined);
  const answer = new Promise<string>((resolve) => {
    socket.once("close", () => resolve(Buffer.concat(parts).toString()));
  });
  return { socket, answer };
}

// Uses a separate server with a short time-out. The other tests need a longer one: they open
// hundreds of connections at once, which can delay the last ones by a second.
describe("a slow request", () => {
  let hasty: Forge;

  beforeAll(async () => {
    hasty = await startForge({ FORGE_REQUEST_TIMEOUT_S: "3" });
  });

  afterAll(async () => {
    await hasty?.stop();
  });

  test("a request that trickles in is refused, and its connection closed", async () => {
    const { socket, answer } = openSocket(hasty.stack.apiUrl);
    socket.write(
      `POST /api/jobs/audit HTTP/1.1\r\nHost: x\r\nX-Service-Api-Key: ${hasty.stack.keys.userKey}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
    );
    const drip = setInterval(() => socket.write(" "), 100);
    const text = await answer;
    clearInterval(drip);
    expect(text).toMatch(/^HTTP\/1\.1 408 [\s\S]*"request_timeout"/);
  });

  test("a refused request is not read forever", async () => {
    const { socket, answer } = openSocket(hasty.stack.apiUrl);
    socket.write("POST /api/jobs/audit HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
    const flood = setInterval(() => socket.write("x".repeat(1000)), 50);
    const text = await answer;
    clearInterval(flood);
    expect(text).toMatch(/^HTTP\/1\.1 403 [\s\S]*"invalid_api_key"/);
  });

  test("an upload may be slow while it makes progress", async () => {
    const { socket, answer } = openSocket(hasty.stack.apiUrl);
    const row = '{"q": 1}\n';
    // At ten rows a second, the upload takes longer than the time-out of 3 s.
    const rows = 45;
    socket.write(
      `POST /api/datasets HTTP/1.1\r\nHost: x\r\nX-Service-Api-Key: ${hasty.stack.keys.userKey}\r\n` +
        `Content-Type: application/x-ndjson\r\nConnection: close\r\nContent-Length: ${row.length * rows}\r\n\r\n`,
    );
    let sent = 0;
    const drip = setInterval(() => {
      if (sent++ < rows) socket.write(row);
    }, 100);
    const text = await answer;
    clearInterval(drip);
    expect(text).toMatch(/^HTTP\/1\.1 201 [\s\S]*"num_rows":45/);
  });
});

describe("from a browser", () => {
  const preflight = (origin: string): Promise<Response> =>
    fetch(`${forge.stack.apiUrl}/api/jobs`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "x-service-api-key",
      },
    });

  test("a configured origin may call; its preflight needs no key", async () => {
    const response = await preflight("https://lab.example");
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe("https://lab.example");
    expect(response.headers.get("access-control-allow-headers")).toContain("x-service-api-key");
  });

  test("any other may not", async () => {
    const response = await preflight("https://evil.example");
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  });

  test("a refusal can be read there, too", async () => {
    const response = await fetch(`${forge.stack.apiUrl}/api/jobs`, {
      headers: { origin: "https://lab.example" },
    });
    expect(response.status).toBe(403);
    expect(response.headers.get("access-control-allow-origin")).toBe("https://lab.example");
  });
});

test("errors are problem details for those that accept them", async () => {
  const response = await fetch(`${forge.stack.apiUrl}/api/jobs/nope`, {
    headers: {
      "x-service-api-key": forge.stack.keys.userKey,
      accept: "application/problem+json, application/json;q=0.5",
      "x-request-id": "my-own",
    },
  });
  expect(response.headers.get("content-type")).toContain("application/problem+json");
  expect(response.headers.get("x-request-id")).toBe("my-own");
  expect(await response.json()).toEqual({
    type: "urn:forge:error:job_not_found",
    title: "job not found",
    status: 404,
    detail: expect.stringContaining("nope"),
    code: "job_not_found",
    param: "job_id",
    request_id: "my-own",
  });
});

test.each([
  ["/api/job/x", "/api/jobs/x"],
  ["/api/artefacts", "/api/artifacts"],
  ["/api/billing/sumary", "/api/billing/summary"],
])("%s suggests %s", async (path, near) => {
  const answer = await forge.user.call<{ error: { message: string } }>("GET", path);
  expect(answer.status).toBe(404);
  expect(answer.body.error.message).toContain(`did you mean "${near}"`);
});

test("the API reference needs no key, and loads nothing from other origins", async () => {
  const page = await fetch(`${forge.stack.apiUrl}/docs/`);
  expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
  const data = await fetch(`${forge.stack.apiUrl}/healthz`);
  expect(data.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(page.status).toBe(200);
  const html = await page.text();
  const files = [...html.matchAll(/<(?:link|script)[^>]* (?:href|src)="([^"]+)"/g)].map(
    ([, file]) => file ?? "",
  );
  expect(files).toHaveLength(5);
  for (const file of files.filter((name) => !name.startsWith("data:"))) {
    expect(file).not.toMatch(/^(https?:)?\/\//);
    expect((await fetch(`${forge.stack.apiUrl}/docs/${file}`)).status).toBe(200);
  }
  // The page also works at /docs, without the slash: its base is /docs/.
  expect(await (await fetch(`${forge.stack.apiUrl}/docs`)).text()).toContain('<base href="/docs/"');
  expect((await fetch(`${forge.stack.apiUrl}/docs/openapi.json`)).status).toBe(200);
  expect((await fetch(`${forge.stack.apiUrl}/docs/../openapi.json`)).status).toBe(403);
  expect((await fetch(`${forge.stack.apiUrl}/openapi.json`)).status).toBe(403);
});

test("a server stops although a client holds an idle connection", async () => {
  const { hostname, port } = new URL(otherUrl);
  const silent = connect(Number(port), hostname);
  silent.on("error", () => undefined);
  await new Promise((resolve) => silent.once("connect", resolve));
  const [other] = forge.stack.otherServers;
  const began = performance.now();
  await other?.stop("SIGTERM", 30_000);
  expect(performance.now() - began).toBeLessThan(12_000);
  silent.destroy();
});
