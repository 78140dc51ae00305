import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Forge, ForgeError } from "../src/index.ts";
import { FakeForge, job, KEY } from "./fake-forge.ts";

const VARIABLES = ["FORGE_HOME", "SERVICE_API_KEY", "SERVICE_BASE_URL"];
const before = VARIABLES.map((name) => [name, process.env[name]] as const);
const home = mkdtempSync(join(tmpdir(), "forge-stack-"));

beforeEach(() => {
  for (const name of VARIABLES) delete process.env[name];
  process.env.FORGE_HOME = home;
});

afterAll(() => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  rmSync(home, { recursive: true });
});

const stackAt = (api_url: string): void =>
  writeFileSync(join(home, "stack.json"), JSON.stringify({ api_url, user_api_key: KEY }));

test("the local stack's key is sent to the local stack only", async () => {
  const server = await new FakeForge().start();
  try {
    stackAt(server.url);
    server.script = () => job();
    await new Forge().status("job_1");
    await new Forge({ baseUrl: `${server.url}/` }).status("job_1");
    await new Forge({ apiKey: "mine" }).status("job_1");
    const keys = server.asked.map(({ headers }) => headers["x-service-api-key"]);
    expect(keys).toEqual([KEY, KEY, "mine"]);
    const elsewhere = { baseUrl: "https://elsewhere.example" };
    expect(() => new Forge(elsewhere)).toThrow("SERVICE_API_KEY is not set");
  } finally {
    await server.stop();
  }
});

test("a bearer key is sent in Authorization only", async () => {
  const server = await new FakeForge().start();
  try {
    server.script = () => job();
    const client = new Forge({ apiKey: "mine", baseUrl: server.url, bearer: true });
    await client.status("job_1");
    await client.withOptions({ maxRetries: 0 }).status("job_1");
    for (const { headers } of server.asked) {
      expect(headers.authorization).toBe("Bearer mine");
      expect(headers).not.toHaveProperty("x-service-api-key");
    }
  } finally {
    await server.stop();
  }
});

test.each([
  ["http://localhost:8080", true],
  ["http://127.8.9.1:8080", true],
  ["http://[::1]:8080", true],
  ["https://elsewhere.example", false],
  ["http://127.0.0.1.elsewhere.example", false],
  ["http://localhost.elsewhere.example", false],
  ["http://localhost@elsewhere.example", false],
  ["http://10.0.0.1:8080", false],
])("another key is sent to the address %s of a stack.json: %s", (address, goes) => {
  stackAt(address);
  const clients = [
    () => new Forge({ apiKey: "mine" }),
    () => {
      process.env.SERVICE_API_KEY = "mine";
      return new Forge();
    },
  ];
  for (const client of clients) {
    if (goes) expect(client).not.toThrow();
    else expect(client).toThrow("SERVICE_BASE_URL is not set");
  }
  process.env.SERVICE_BASE_URL = "https://forge.example.com";
  for (const client of clients) expect(client).not.toThrow(ForgeError);
});
