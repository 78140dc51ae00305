import { ApiClient } from "../../dev/api-client";
import { all, execute } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { createTenant } from "../support/tenants";

let forge: Forge;
let dataset: string;

const ROWS = '{"q": "one"}\n{"q": "two"}\n';

beforeAll(async () => {
  forge = await startForge();
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets?name=questions`, {
    method: "POST",
    headers: {
      "x-service-api-key": forge.stack.keys.userKey,
      "content-type": "application/x-ndjson",
    },
    body: ROWS,
  });
  dataset = ((await response.json()) as { dataset_id: string }).dataset_id;
});

afterAll(async () => {
  await forge?.stop();
});

interface Ticket {
  url: string;
  expires_at: string;
  path: string;
  size_bytes: number;
}

const ticketFor = (api: ApiClient = forge.user, path = "raw.jsonl"): Promise<Ticket> =>
  api.post<Ticket>(`/api/artifacts/${dataset}/tickets`, { path });

/** Follows a link like a browser, without a key. */
const follow = (url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${forge.stack.apiUrl}${url}`, { headers });

async function expectRefused(url: string): Promise<void> {
  const response = await follow(url);
  expect([response.status, await response.json()]).toEqual([
    403,
    { error: expect.objectContaining({ code: "invalid_ticket" }) },
  ]);
}

test("a ticket is a link to one file for a minute, as an attachment", async () => {
  const ticket = await ticketFor();
  expect(ticket).toMatchObject({ path: "raw.jsonl", size_bytes: ROWS.length });
  const lasts = Date.parse(ticket.expires_at) - Date.now();
  expect(lasts).toBeGreaterThan(50_000);
  expect(lasts).toBeLessThanOrEqual(60_500);
  const response = await follow(ticket.url);
  expect([response.status, await response.text()]).toEqual([200, ROWS]);
  const { headers } = response;
  expect(headers.get("content-disposition")).toBe(
    `attachment; filename="raw.jsonl"; filename*=UTF-8''raw.jsonl`,
  );
  expect(headers.get("content-type")).toBe("application/octet-stream");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("content-security-policy")).toContain("sandbox");
  expect(headers.get("cache-control")).toBe("no-store");
  // A browser can resume an interrupted download.
  const rest = await follow(ticket.url, { range: "bytes=13-" });
  expect([rest.status, await rest.text()]).toEqual([206, ROWS.slice(13)]);
  expect((await follow(ticket.url, { range: "bytes=999-" })).status).toBe(416);
  const manifest = await follow((await ticketFor(forge.user, "manifest.json")).url);
  expect(await manifest.json()).toMatchObject({ artifact_id: dataset });
});

test("a ticket holds no key, and its text is stored nowhere", async () => {
  const { url } = await ticketFor();
  const text = url.slice(url.indexOf("=") + 1);
  expect(url).not.toContain("forge_");
  const rows = await all<{ row: string }>(
    forge.ctx.pool,
    "select t::text as row from download_tickets t",
  );
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.filter(({ row }) => row.includes(text))).toEqual([]);
});

test("an expired, changed or missing ticket is refused", async () => {
  const { url } = await ticketFor();
  await expectRefused(`${url.slice(0, -1)}${url.endsWith("A") ? "B" : "A"}`);
  await expectRefused("/api/downloads?ticket=");
  await expectRefused("/api/downloads?ticket=' or true --");
  expect((await follow("/api/downloads")).status).toBe(400);
  await execute(forge.ctx.pool, "update download_tickets set expires_at = now()");
  await expectRefused(url);
  // Creating another ticket deletes the expired one.
  await ticketFor();
  expect(await all(forge.ctx.pool, "select from download_tickets")).toHaveLength(1);
});

test("a ticket ends with the key that created it, and with its artifact", async () => {
  const { key, key_id } = await forge.user.post<{ key: string; key_id: string }>(
    "/api/auth/api-keys",
    {},
  );
  const { url } = await ticketFor(new ApiClient(forge.stack.apiUrl, key));
  expect((await follow(url)).status).toBe(200);
  await forge.user.call("DELETE", `/api/auth/api-keys/${key_id}`);
  await expectRefused(url);
  const last = await ticketFor();
  await forge.user.call("DELETE", `/api/artifacts/${dataset}`);
  expect((await follow(last.url)).status).toBe(410);
  const late = await forge.user.call("POST", `/api/artifacts/${dataset}/tickets`, {
    path: "raw.jsonl",
  });
  expect(late.status).toBe(410);
});

test("another tenant gets no ticket, and only existing files have one", async () => {
  const { user } = await createTenant(forge, "downloader");
  const ask = (api: ApiClient, id: string, path: string) =>
    api.call("POST", `/api/artifacts/${id}/tickets`, { path });
  expect(await ask(user, dataset, "raw.jsonl")).toMatchObject({
    status: 404,
    body: { error: { code: "artifact_not_found" } },
  });
  const other = await fetch(`${forge.stack.apiUrl}/api/datasets?name=other`, {
    method: "POST",
    headers: { "x-service-api-key": user.key, "content-type": "application/x-ndjson" },
    body: ROWS,
  });
  const { dataset_id: own } = (await other.json()) as { dataset_id: string };
  for (const path of ["nothing", "../manifest.json", `../${dataset}/raw.jsonl`]) {
    expect(await ask(user, own, path)).toMatchObject({
      status: 404,
      body: { error: { code: "file_not_found" } },
    });
  }
  // An admin can create a ticket for a tenant's artifact.
  const admins = await forge.admin.post<Ticket>(`/api/artifacts/${own}/tickets`, {
    path: "raw.jsonl",
  });
  expect(await (await follow(admins.url)).text()).toBe(ROWS);
});
