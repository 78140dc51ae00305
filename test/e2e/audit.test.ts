import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { checkoutRoot } from "../../dev/stack/paths";
import { migrate } from "../../platform/postgres/migrate";
import { execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { findAuditEnd, listBrokenEntries } from "../../services/accounts/audit";
import { type Forge, startForge } from "../support/forge";
import { verifyAudit } from "../support/forge-server";
import { untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge();
});

afterAll(async () => {
  await forge?.stop();
});

interface Entry {
  entry_id: number;
  user_id: string | null;
  action: string;
  subject: string;
  created_by: string;
  scope: string;
  after: unknown;
  hash: string;
}

const entriesOf = async (api = forge.admin): Promise<Entry[]> =>
  (await api.get<{ entries: Entry[] }>("/api/audit-log?limit=200")).entries;

test("a tenant's actions on keys, workers, artifacts, rules and steps are logged with their actor", async () => {
  const ann = await createTenant(forge, "audited");
  const key = await ann.user.post<{ key_id: string }>("/api/auth/api-keys", { name: "box" });
  await ann.user.call("DELETE", `/api/auth/api-keys/${key.key_id}`);
  const worker = ann.worker("audited-1");
  await worker.register();
  const { job_id } = await ann.user.submit("audit", { dataset_uri: "s3://b/d.parquet" });
  await worker.complete(await worker.take());
  const { result } = await untilEnded(ann.user, job_id);
  await ann.user.call("DELETE", `/api/artifacts/${result?.dataset_id}`);
  await ann.user.call("PUT", "/api/retention", { rules: [{ kind: "raw_dataset", keep_days: 9 }] });
  await ann.user.post("/api/workers/audited-1/drain", {});
  await ann.user.call("DELETE", "/api/workers/audited-1");
  const logged = (await entriesOf(ann.user)).map(({ action, subject, created_by, scope }) => [
    action,
    subject,
    created_by,
    scope,
  ]);
  expect(logged).toEqual([
    ["worker_decommissioned", "audited-1", "user", "user"],
    ["worker_drained", "audited-1", "user", "user"],
    ["retention_set", "audited", "user", "user"],
    ["artifact_deleted", result?.dataset_id, "user", "user"],
    ["key_revoked", key.key_id, "user", "user"],
    ["key_created", key.key_id, "user", "user"],
  ]);
  // A tenant's log contains no other tenant's entries, and no key's secret value.
  const other = await createTenant(forge, "not-audited");
  expect(await entriesOf(other.user)).toEqual([]);
  expect(JSON.stringify(await entriesOf())).not.toContain("forge_user_");
  await forge.endTest();
});

test("every change requested with an admin key is logged, also a refused one", async () => {
  await forge.admin.call("DELETE", "/api/workers/nobody?x=forge_secret");
  await forge.admin.call("GET", "/api/jobs");
  const [last] = await entriesOf();
  expect(last).toMatchObject({
    action: "admin_request",
    subject: "DELETE /api/workers/nobody",
    scope: "admin",
    user_id: null,
  });
});

test("concurrent entries form one chain, and verify confirms it", async () => {
  const ann = await createTenant(forge, "at-once");
  const before = (await entriesOf())[0]?.entry_id ?? 0;
  await Promise.all(
    Array.from({ length: 30 }, (_, n) => ann.user.post("/api/auth/api-keys", { name: `key-${n}` })),
  );
  const entries = await entriesOf();
  expect(entries[0]?.entry_id).toBe(before + 30);
  expect(new Set(entries.map(({ hash }) => hash)).size).toBe(entries.length);
  const { code, stdout: out } = await verifyAudit(forge, "--expect", entries[5]?.hash ?? "");
  expect([code, out]).toEqual([0, expect.stringMatching(/entries, 0 broken; the last: /)]);
  expect(out).toContain(entries[0]?.hash);
});

test("an entry can't be changed or removed; verify detects it if the triggers are bypassed", async () => {
  const { pool } = forge.ctx;
  const [last, , third] = await entriesOf();
  for (const sql of [
    "update audit_entries set action = 'nothing' where entry_id = $1",
    "delete from audit_entries where entry_id = $1",
  ]) {
    await expect(execute(pool, sql, [third?.entry_id])).rejects.toThrow("stay as they are");
  }
  await expect(execute(pool, "truncate audit_entries", [])).rejects.toThrow("stay as they are");

  const tamper = (sql: string, id: number | undefined): Promise<unknown> =>
    transaction(pool, async (db) => {
      await execute(db, "alter table audit_entries disable trigger audit_kept", []);
      await execute(db, sql, [id]);
      await execute(db, "alter table audit_entries enable trigger audit_kept", []);
    });
  await tamper(
    "update audit_entries set created_by = 'mallory' where entry_id = $1",
    third?.entry_id,
  );
  const changed = await verifyAudit(forge);
  expect([changed.code, changed.stdout]).toEqual([
    1,
    expect.stringContaining(`entry ${third?.entry_id} was changed`),
  ]);
  await tamper("delete from audit_entries where entry_id = $1", third?.entry_id);
  const removed = await verifyAudit(forge);
  expect([removed.code, removed.stdout]).toEqual([1, expect.stringContaining("does not follow")]);
  // The hash chain alone does not show that the last entry was removed. `--expect` does: it gets
  // the entry's hash, which an operator has stored elsewhere.
  await tamper("delete from audit_entries where entry_id = $1", last?.entry_id);
  const cut = await verifyAudit(forge, "--expect", last?.hash ?? "");
  expect([cut.code, cut.stdout]).toEqual([1, expect.stringContaining(`no entry has the hash`)]);
});

test("entries of a release without hashes are chained by the migration", async () => {
  const admin = new pg.Client({ connectionString: forge.ctx.config.database.url });
  await admin.connect();
  const name = `audit_before_${process.pid}`;
  await admin.query(`create database ${name}`);
  const url = new URL(forge.ctx.config.database.url);
  url.pathname = `/${name}`;
  const old = new pg.Client({ connectionString: url.href });
  try {
    await old.connect();
    const folder = join(checkoutRoot(), "platform/postgres/migrations");
    const files = readdirSync(folder).filter((file) => file < "0015");
    await old.query(
      "create table migrations (name text primary key, digest text not null, applied_at timestamptz not null default now())",
    );
    for (const file of files.sort()) {
      const sql = readFileSync(join(folder, file), "utf8");
      await old.query(sql);
      const digest = createHash("sha256").update(sql).digest("hex");
      await old.query("insert into migrations (name, digest) values ($1, $2)", [file, digest]);
    }
    for (const subject of ["one", "two", "three"]) {
      await old.query(
        `insert into audit_entries (action, subject, key_id, created_by, scope, after)
         values ('budget_set', $1, 'k', 'ann', 'user', '{"cap_usd": 1.50}')`,
        [subject],
      );
    }
    expect(await migrate(url.href)).toContain("0015_audit_chain.sql");
    await old.query(
      "insert into audit_entries (action, subject, key_id, created_by, scope) values ('a', 'b', 'k', 'c', 'user')",
    );
    expect(await listBrokenEntries(old)).toEqual([]);
    expect(await findAuditEnd(old)).toMatchObject({ entries: 4 });
  } finally {
    await old.end();
    await admin.query(`drop database ${name} with (force)`);
    await admin.end();
  }
});
