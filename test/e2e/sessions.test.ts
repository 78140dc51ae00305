import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { createTenant } from "../support/tenants";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_MAX_SESSIONS: "5", FORGE_TEMPORAL_UI_URL: "http://ui.test/" });
});

afterAll(async () => {
  await forge?.stop();
});

interface Key {
  key_id: string;
  key: string;
  name: string;
  scope: string;
  expires_at: string;
  revoked_at: string | null;
  session_of: string | null;
}

const withKey = (key: string): ApiClient => new ApiClient(forge.stack.apiUrl, key);
const makeKey = (api: ApiClient, body: object = {}): Promise<Key> =>
  api.post<Key>("/api/auth/api-keys", body);
const signIn = (api: ApiClient): Promise<Key> => api.post<Key>("/api/auth/sessions", {});
const pingStatus = async (key: string): Promise<number> =>
  (await withKey(key).call("GET", "/api/auth/ping")).status;

const list = async (api: ApiClient, query = ""): Promise<Key[]> =>
  (await api.get<{ api_keys: Key[] }>(`/api/auth/api-keys${query}`)).api_keys;

const HOUR_MS = 3_600_000;

test("a session has the key's scope, name and tenant, and ends 12 hours later", async () => {
  const { user } = await createTenant(forge, "signing-in");
  const key = await makeKey(user, { name: "laptop" });
  const session = await signIn(withKey(key.key));
  expect(session).toMatchObject({ name: "laptop", scope: "user", session_of: key.key_id });
  const lasts = Date.parse(session.expires_at) - Date.now();
  expect(lasts / HOUR_MS).toBeCloseTo(12, 1);
  const api = withKey(session.key);
  expect(await api.get("/api/auth/ping")).toEqual({
    ok: true,
    user_id: "signing-in",
    user_name: expect.any(String),
    key_id: session.key_id,
    key_name: "laptop",
    scope: "user",
    expires_at: session.expires_at,
    is_session: true,
    features: {
      temporal_ui_url: "http://ui.test",
      ssh_workers: expect.any(Boolean),
      budgets: true,
      billing_export: true,
    },
  });
  expect(await api.submit("audit", AUDIT)).toMatchObject({ created_by: "laptop" });
  const admins = await signIn(forge.admin);
  expect(await withKey(admins.key).get("/api/auth/ping")).toMatchObject({ scope: "admin" });
});

test("a worker key gets no session", async () => {
  const worker = withKey(forge.stack.keys.workerKey);
  expect(await worker.call("POST", "/api/auth/sessions", {})).toMatchObject({
    status: 403,
    body: { error: { code: "insufficient_scope" } },
  });
  expect(await worker.get("/api/auth/ping")).toMatchObject({
    features: { temporal_ui_url: null },
  });
});

test("a session ends with its key, and with the session that created it", async () => {
  const { user } = await createTenant(forge, "dying");
  const key = await makeKey(user);
  const first = await signIn(withKey(key.key));
  const second = await signIn(withKey(first.key));
  expect(second.session_of).toBe(key.key_id);
  expect(Date.parse(second.expires_at)).toBeLessThanOrEqual(Date.parse(first.expires_at));
  await user.call("DELETE", `/api/auth/api-keys/${key.key_id}`);
  expect(await Promise.all([first, second].map(({ key: text }) => pingStatus(text)))).toEqual([
    403, 403,
  ]);
});

test("a session never outlives its key", async () => {
  const { user } = await createTenant(forge, "expiring");
  const expires_at = new Date(Date.now() + 8_000).toISOString();
  const key = await makeKey(user, { expires_at });
  const session = await signIn(withKey(key.key));
  expect(session.expires_at).toBe(expires_at);
  await waitFor("its expiry", async () => (await pingStatus(session.key)) === 403);
});

test("signing out ends only the session: keys created in it belong to its key", async () => {
  const { user } = await createTenant(forge, "leaving");
  const parent = await makeKey(user, { name: "parent" });
  const session = await signIn(withKey(parent.key));
  const api = withKey(session.key);
  const made = await makeKey(api, { name: "made in the dashboard" });
  expect(made.expires_at).toBeNull();
  expect((await api.call("DELETE", `/api/auth/api-keys/${session.key_id}`)).status).toBe(200);
  expect(await pingStatus(session.key)).toBe(403);
  expect(await pingStatus(parent.key)).toBe(200);
  expect(await pingStatus(made.key)).toBe(200);
  await user.call("DELETE", `/api/auth/api-keys/${parent.key_id}`);
  expect(await pingStatus(made.key)).toBe(403);
});

test("sessions are not keys: they are listed and limited separately", async () => {
  const { user } = await createTenant(forge, "counting");
  const before = await list(user);
  const sessions = [];
  for (let n = 0; n < 5; n++) sessions.push((await signIn(user)).key_id);
  expect(await user.call("POST", "/api/auth/sessions", {})).toMatchObject({
    status: 409,
    body: { error: { code: "quota_exceeded", details: { cap: "sessions", limit: 5, used: 5 } } },
  });
  expect((await list(user)).map(({ key_id }) => key_id)).toEqual(
    before.map(({ key_id }) => key_id),
  );
  const shown = await list(user, "?sessions=true");
  expect(shown.map(({ key_id }) => key_id)).toEqual(sessions.reverse());
  const { limits } = await user.get<{ limits: { name: string; used: number }[] }>("/api/limits");
  expect(limits).toContainEqual(expect.objectContaining({ name: "sessions", used: 5 }));
  expect(limits).toContainEqual(expect.objectContaining({ name: "keys", used: before.length }));
  await user.call("DELETE", `/api/auth/api-keys/${sessions[0]}`);
  expect(await user.call("POST", "/api/auth/sessions", {})).toMatchObject({ status: 201 });
});

test("using a session counts as a use of its key", async () => {
  const { user } = await createTenant(forge, "using");
  const key = await makeKey(user);
  const session = await signIn(withKey(key.key));
  await execute(forge.ctx.pool, "update api_keys set last_used_at = null where key_id = $1", [
    key.key_id,
  ]);
  await withKey(session.key).get("/api/auth/ping");
  await waitFor("the note", async () =>
    maybeOne(
      forge.ctx.pool,
      "select from api_keys where key_id = $1 and last_used_at is not null",
      [key.key_id],
    ),
  );
});

test("expired sessions are deleted at later sign-ins, created ones before their creator", async () => {
  const { user } = await createTenant(forge, "sweeping");
  const old = await signIn(user);
  // Insert 120 sessions as if the session `old` had created them, with the same expiry time. Each
  // sign-in deletes at most 100 sessions. So the first two sign-ins delete the 120 sessions, and
  // the third one deletes `old`.
  await execute(
    forge.ctx.pool,
    `insert into api_keys (key_id, user_id, scope, name, digest, last4, expires_at,
                           made_by_key_id, session_of)
     select key_id || n, user_id, scope, name, sha256(n::text::bytea), last4, expires_at,
            key_id, session_of
     from api_keys, generate_series(1, 120) n where key_id = $1`,
    [old.key_id],
  );
  await execute(
    forge.ctx.pool,
    `update api_keys set expires_at = now() - interval '25 h'
     where user_id = 'sweeping' and session_of is not null`,
  );
  const kept = [await signIn(user), await signIn(user), await signIn(user)];
  const rows = await all<{ key_id: string }>(
    forge.ctx.pool,
    `select key_id from api_keys where user_id = 'sweeping' and session_of is not null
     order by created_at`,
  );
  expect(rows.map(({ key_id }) => key_id)).toEqual(kept.map(({ key_id }) => key_id));
});

test("a repeated Idempotency-Key returns the same session, without its text", async () => {
  const { user } = await createTenant(forge, "repeating");
  const once = (): Promise<{ body: Key }> =>
    user.call<Key>("POST", "/api/auth/sessions", {}, { "idempotency-key": "once" });
  const [first, again] = [await once(), await once()];
  expect(again.body).toEqual({ ...first.body, key: null });
});
