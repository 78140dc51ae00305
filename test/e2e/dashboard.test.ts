/** How the server serves the dashboard's files. Its behaviour in a browser is in test/browser. */

import { brotliDecompressSync } from "node:zlib";
import { type Forge, startForge } from "../support/forge";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge();
});

afterAll(async () => {
  await forge?.stop();
});

const get = async (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  await fetch(`${forge.stack.apiUrl}${path}`, { headers, redirect: "manual" });

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
  "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types forge";

test("/ redirects to the dashboard, without a key", async () => {
  const answer = await get("/");
  expect(answer.status).toBe(302);
  expect(answer.headers.get("location")).toBe("/ui/");
});

test.each(["/ui", "/ui/", "/ui/index.html", "/ui/jobs/job_1?tab=log", "/ui/no/such/page"])(
  "%s returns the page, with its own content security policy",
  async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("content-security-policy")).toBe(CSP);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    expect(await answer.text()).toContain('<div id="root">');
  },
);

test("the page is not sent again while it is unchanged", async () => {
  const etag = (await get("/ui/")).headers.get("etag") ?? "";
  expect((await get("/ui/jobs", { "if-none-match": etag })).status).toBe(304);
  expect((await get("/ui/", { "if-none-match": '"another"' })).status).toBe(200);
});

async function scriptPath(): Promise<string> {
  const html = await (await get("/ui/")).text();
  return /src="(\/ui\/assets\/[^"]+\.js)"/.exec(html)?.[1] ?? "";
}

test("hashed files are cached forever, and compressed if the client accepts it", async () => {
  const path = await scriptPath();
  const plain = await get(path, { "accept-encoding": "identity" });
  expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(plain.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(plain.headers.get("content-encoding")).toBeNull();
  expect(plain.headers.get("vary")).toBe("accept-encoding");
  const length = (answer: Response): number => Number(answer.headers.get("content-length"));
  for (const encoding of ["br", "gzip"]) {
    const packed = await get(path, { "accept-encoding": encoding });
    expect(packed.headers.get("content-encoding")).toBe(encoding);
    expect(length(packed)).toBeLessThan(length(plain) / 2);
    // `fetch` decompresses the body, so both texts must be equal.
    expect(await packed.text()).toBe(await (await get(path)).text());
  }
  const refused = await get(path, { "accept-encoding": "br;q=0, gzip;q=0.5" });
  expect(refused.headers.get("content-encoding")).toBe("gzip");
});

test("a missing file does not return the page", async () => {
  const answer = await get("/ui/assets/index-missing.js");
  expect(answer.status).toBe(404);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(await answer.text()).toBe("");
});

test.each(["/ui/.built", "/ui/%2e%2e/bin/forge-server.js", "/ui/assets/../../package.json"])(
  "%s returns only the page",
  async (path) => {
    expect(await (await get(path)).text()).not.toMatch(/require\(|"name":/);
  },
);

test("a path that can't be decoded is not found", async () => {
  for (const path of ["/ui/%E0%A4%A", "/ui/jobs/%zz?tab=log"]) {
    const answer = await get(path, { "if-none-match": "*" });
    expect(answer.status).toBe(404);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("content-security-policy")).toBe(CSP);
    expect(await answer.text()).toContain('<div id="root">');
  }
  const outside = await get("/api/jobs/%E0%A4%A");
  expect(outside.status).toBe(403);
});

test("it accepts only GET and HEAD", async () => {
  const answer = await fetch(`${forge.stack.apiUrl}/ui/jobs`, { method: "POST" });
  expect(answer.status).toBe(403);
  const head = await fetch(`${forge.stack.apiUrl}/ui/`, { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
});

test("brotli responses decompress to the same file", async () => {
  const { request } = await import("node:http");
  const bytes = await new Promise<Buffer>((resolve) => {
    request(`${forge.stack.apiUrl}/ui/`, { headers: { "accept-encoding": "br" } }, (answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("end", () => resolve(Buffer.concat(parts)));
    }).end();
  });
  expect(brotliDecompressSync(bytes).toString()).toContain("<!doctype html>");
});
