import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { EventStream } from "../support/event-stream";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { TestWorker } from "../support/test-worker";

let forge: Forge;
/** A second API process, as behind a load balancer. */
let otherUrl: string;

beforeAll(async () => {
  forge = await startForge({ FORGE_ASSIGNMENT_TIMEOUT_S: "3" });
  otherUrl = await forge.stack.startAnotherServer();
});

afterAll(async () => {
  await forge?.stop();
});

interface Key {
  key_id: string;
  key: string;
  name: string;
  scope: string;
  last4: string;
  expires_at: string | null;
  last_used_at: string | null;
  revoked_at: string | null;
}

const create = (body: object): Promise<Key> => forge.user.post<Key>("/api/auth/api-keys", body);
const withKey = (key: string, url = forge.stack.apiUrl): ApiClient => new ApiClient(url, key);
const list = async (api = forge.user): Promise<Key[]> =>
  (await api.get<{ api_keys: Key[] }>("/api/auth/api-keys")).api_keys;

test("a key's secret value is shown once, and stored nowhere", async () => {
  const made = await create({ name: "laptop" });
  expect(made.key.endsWith(made.last4)).toBe(true);
  expect(await withKey(made.key).get("/api/auth/ping")).toMatchObject({ key_id: made.key_id });
  const [shown] = await list();
  expect(shown).toMatchObject({ key_id: made.key_id, name: "laptop", scope: "user" });
  expect(shown).not.toHaveProperty("key");
  // The key has the form forge_<scope>_<secret>_<checksum>. The secret may contain "_".
  const secret = made.key.slice("forge_user_".length, made.key.lastIndexOf("_"));
  expect(secret).toHaveLength(32);
  const tables = ["api_keys", "idempotency", "users", "jobs"];
  for (const table of tables) {
    const rows = await all<{ row: string }>(
      forge.ctx.pool,
      `select t::text as row from ${table} t`,
    );
    expect(rows.filter(({ row }) => row.includes(secret))).toEqual([]);
  }
});

test("a repeated creation creates one key, whose text is not shown again", async () => {
  const before = (await list()).length;
  const headers = { "idempotency-key": "key-once" };
  const make = () => forge.user.call<Key>("POST", "/api/auth/api-keys", { name: "once" }, headers);
  const [first, again] = [await make(), await make()];
  expect(first.body.key).toMatch(/^forge_user_/);
  expect(again.body).toEqual({ ...first.body, key: null });
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(await list()).toHaveLength(before + 1);
});

test("a user creates user and worker keys, an admin all kinds; a worker none", async () => {
  expect(await create({ scope: "worker" })).toMatchObject({ scope: "worker" });
  const refused = await forge.user.call("POST", "/api/auth/api-keys", { scope: "admin" });
  expect(refused).toMatchObject({ status: 403, body: { error: { param: "scope" } } });
  expect(await forge.admin.post("/api/auth/api-keys", { scope: "admin" })).toMatchObject({
    scope: "admin",
  });
  const worker = withKey(forge.stack.keys.workerKey);
  expect((await worker.call("POST", "/api/auth/api-keys", {})).status).toBe(403);
});

test("a worker key created by an admin registers shared workers", async () => {
  const { key } = await forge.admin.post<Key>("/api/auth/api-keys", { scope: "worker" });
  await new TestWorker(withKey(key), "for-all").register();
  await execute(
    forge.ctx.pool,
    "update workers set ssh_host = '192.0.2.7' where worker_id = 'for-all'",
  );
  const seen = { shared: true, ssh_host: "192.0.2.7" };
  expect(await forge.admin.get("/api/workers/for-all")).toMatchObject(seen);
  // Other tenants see the shared worker without its address, and may not change it.
  const { workers } = await forge.user.get<{ workers: { worker_id: string }[] }>("/api/workers");
  expect(workers).toContainEqual(
    expect.objectContaining({ worker_id: "for-all", shared: true, ssh_host: null }),
  );
  expect((await forge.user.call("POST", "/api/workers/for-all/drain", {})).status).toBe(404);
  // A worker that serves only other tenants is not found.
  await new TestWorker(withKey(key), "for-others").register(undefined, { tenants: ["others"] });
  expect((await forge.user.call("GET", "/api/workers/for-others")).status).toBe(404);
  expect((await forge.admin.call("GET", "/api/workers/for-others")).status).toBe(200);
  const shown = await forge.user.get<{ workers: { worker_id: string }[] }>("/api/workers");
  expect(shown.workers.map(({ worker_id: id }) => id)).not.toContain("for-others");
});

test("an expired key is refused", async () => {
  const soon = new Date(Date.now() + 60_000).toISOString();
  const { key, key_id } = await create({ expires_at: soon });
  expect((await withKey(key).call("GET", "/api/auth/ping")).status).toBe(200);
  const past = "update api_keys set expires_at = expires_at - interval '61 s' where key_id = $1";
  await execute(forge.ctx.pool, past, [key_id]);
  await waitFor("its expiry", async () => {
    const answer = await withKey(key).call<{ error: { code: string } }>("GET", "/api/auth/ping");
    return answer.status === 403 && answer.body.error.code === "invalid_api_key";
  });
});

test("its last use is recorded once a minute", async () => {
  const { key, key_id } = await create({});
  const noted = async (): Promise<string | null | undefined> =>
    (await list()).find((each) => each.key_id === key_id)?.last_used_at;
  expect(await noted()).toBeNull();
  await withKey(key).get("/api/auth/ping");
  const first = await waitFor("the note", async () => (await noted()) ?? undefined);
  for (let n = 0; n < 20; n++) await withKey(key).get("/api/auth/ping");
  expect(await noted()).toBe(first);
  await execute(
    forge.ctx.pool,
    "update api_keys set last_used_at = last_used_at - interval '61 s' where key_id = $1",
    [key_id],
  );
  await waitFor("another note", async () => {
    // The server caches keys, and a request with a cached key records no use. So send a request
    // again until the use is recorded.
    await withKey(key).get("/api/auth/ping");
    return Date.parse((await noted()) ?? "") >= Date.parse(first);
  });
});

test("revoking ends a key at once: requests, streams and waiting polls, in every process", async () => {
  const worker = await create({ scope: "worker" });
  const watcher = await create({});
  const { job_id } = await forge.user.submit("train", {
    dataset_id: "d",
    model: "m",
    resources: { gpu: 8 },
  });
  const polls = [forge.stack.apiUrl, otherUrl].map(async (url, n) => {
    const waiting = new TestWorker(withKey(worker.key, url), `parked-${n}`);
    await waiting.register();
    return await withKey(worker.key, url).call("POST", "/worker/next_job", {
      worker_id: waiting.id,
      wait_seconds: 50,
    });
  });
  const streams = await Promise.all(
    [forge.stack.apiUrl, otherUrl].map((url) =>
      EventStream.open(withKey(watcher.key, url), `/api/jobs/${job_id}/events`),
    ),
  );
  await waitFor("both to wait", async () => {
    const row = await maybeOne<{ count: number }>(
      forge.ctx.pool,
      "select count(*) from workers where worker_id like 'parked-%' and available_until > now()",
    );
    return row?.count === 2;
  });
  for (const { key_id } of [worker, watcher]) {
    // Revoke both keys in the other process only. The polls and streams of both processes must end.
    const answer = await withKey(forge.stack.keys.userKey, otherUrl).call(
      "DELETE",
      `/api/auth/api-keys/${key_id}`,
    );
    expect(answer).toMatchObject({ status: 200, body: { key_id, revoked: true } });
  }
  const since = performance.now();
  for (const poll of await Promise.all(polls)) {
    expect(poll).toMatchObject({ status: 403, body: { error: { code: "invalid_api_key" } } });
  }
  await Promise.all(streams.map((stream) => stream.ended));
  // Without the revocation, the polls would end after 50 s.
  expect(performance.now() - since).toBeLessThan(5_000);
  for (const { key } of [worker, watcher]) {
    for (const url of [forge.stack.apiUrl, otherUrl]) {
      expect((await withKey(key, url).call("GET", "/api/auth/ping")).status).toBe(403);
    }
  }
  const row = (await list()).find((each) => each.key_id === worker.key_id);
  expect(row?.revoked_at).not.toBeNull();
});

test("a poll whose key was revoked without a notification gets no job", async () => {
  const { key, key_id } = await create({ scope: "worker" });
  const waiting = new TestWorker(withKey(key), "behind");
  await waiting.register();
  const poll = withKey(key).call("POST", "/worker/next_job", {
    worker_id: "behind",
    wait_seconds: 20,
  });
  await waitFor("it to wait", async () =>
    maybeOne(
      forge.ctx.pool,
      "select from workers where worker_id = 'behind' and available_until > now()",
    ),
  );
  // Revoke the key without a notification, as if the notification had been lost.
  await execute(forge.ctx.pool, "update api_keys set revoked_at = now() where key_id = $1", [
    key_id,
  ]);
  const { job_id } = await forge.user.submit("audit", AUDIT);
  expect((await poll).status).toBe(403);
  const rescuer = await forge.worker("rescuer");
  await rescuer.complete(await rescuer.take(40));
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ worker_id: "rescuer", attempts: 1 });
});

test("a user key of an admin's tenant can't manage the admin's key", async () => {
  const { key } = await forge.admin.post<Key>("/api/auth/api-keys", { scope: "user" });
  const { key_id } = await forge.admin.get<{ key_id: string }>("/api/auth/ping");
  expect((await withKey(key).call("DELETE", `/api/auth/api-keys/${key_id}`)).status).toBe(404);
  expect((await forge.admin.call("GET", "/api/auth/ping")).status).toBe(200);
});

test("another tenant's key is not found; an admin revokes any", async () => {
  const user = await forge.admin.post<{ user_id: string; api_key: Key }>("/api/admin/users", {
    name: "Team",
  });
  const { key_id, key } = user.api_key;
  expect(await withKey(key).get("/api/auth/ping")).toMatchObject({ user_id: user.user_id });
  expect((await forge.user.call("DELETE", `/api/auth/api-keys/${key_id}`)).status).toBe(404);
  expect(await list(withKey(key))).toHaveLength(1);
  const shown = await forge.admin.get<{ api_keys: Key[] }>(
    `/api/auth/api-keys?user_id=${user.user_id}`,
  );
  expect(shown.api_keys.map((each) => each.key_id)).toEqual([key_id]);
  expect((await forge.admin.call("DELETE", `/api/auth/api-keys/${key_id}`)).status).toBe(200);
  expect((await withKey(key).call("GET", "/api/auth/ping")).status).toBe(403);
});

test("a user's id is unique", async () => {
  const make = () => forge.admin.call("POST", "/api/admin/users", { name: "A", user_id: "twice" });
  expect((await make()).status).toBe(201);
  expect(await make()).toMatchObject({ status: 409, body: { error: { code: "user_id_taken" } } });
});
