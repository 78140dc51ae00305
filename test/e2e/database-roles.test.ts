import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { checkoutRoot } from "../../dev/stack/paths";
import { ensureStackKeys } from "../../dev/stack/secrets";
import { grantServerRights } from "../../platform/postgres/server-rights";
import { runJob, startServersOnly } from "../support/server-process";
import type { TestStack } from "../support/test-stack";

const ROLES = ["forge_owner", "forge_server", "temporal"];

let place: TestStack;
let server: pg.Client;

function urlAs(role: string): string {
  const url = new URL(place.stack.databaseUrl);
  url.username = role;
  url.pathname = "/forge_compose";
  return url.href;
}

async function forgeServer(role: string, ...args: string[]): Promise<string> {
  const program = join(place.stack.release, "bin", "forge-server.js");
  const env = { ...process.env, FORGE_DATABASE_URL: urlAs(role), FORGE_HOME: place.stack.storeDir };
  return (await promisify(execFile)(process.execPath, [program, ...args], { env })).stdout;
}

/**
 * Creates the roles with the script of docker-compose.yml. Renames the script's database, because
 * the test's stack already has a database `forge`.
 */
async function createRoles(): Promise<void> {
  const admin = new pg.Client({ connectionString: place.stack.databaseUrl });
  await admin.connect();
  const script = readFileSync(join(checkoutRoot(), "platform/compose/10-roles.sql"), "utf8")
    .replaceAll(/^--.*$/gm, "")
    .replaceAll(/\bdatabase forge\b/g, "database forge_compose");
  const { password } = new URL(place.stack.databaseUrl);
  const passwords = ROLES.map((role) => `alter role ${role} password '${password}'`);
  const statements = [...script.split(";"), ...passwords];
  for (const statement of statements) if (statement.trim()) await admin.query(statement);
  await admin.end();
}

beforeAll(async () => {
  place = await startServersOnly(["postgres"]);
  await createRoles();
  server = new pg.Client({ connectionString: urlAs("forge_server") });
  await server.connect();
});

afterAll(async () => {
  await server?.end();
  await place?.end();
});

test("a server's role can't migrate, and the error says what to do", async () => {
  await expect(forgeServer("forge_server", "migrate")).rejects.toThrow(
    "run `forge-server migrate` as the owner of the schema",
  );
});

test("migrate --grant grants what a server needs: it starts and runs a job", async () => {
  const grant = ["migrate", "--grant", "forge_server"];
  expect(await forgeServer("forge_owner", ...grant)).toMatch(/^\d\d migrations applied/);
  // Granting the same rights again succeeds, too.
  expect(await forgeServer("forge_owner", ...grant)).toMatch(/^0 migrations applied/);
  expect(await forgeServer("forge_server", "migrate")).toBe("0 migrations applied\n");

  const { stack, env } = place;
  await ensureStackKeys(urlAs("forge_server"), stack.keys);
  env.FORGE_DATABASE_URL = urlAs("forge_server");
  await stack.startServer();
  expect(await runJob(stack, "restricted")).toBe("completed");
  await forgeServer("forge_server", "keys", "create", "--user", "team");
  expect((await server.query("select from audit_entries")).rowCount).toBeGreaterThan(0);
  expect(await forgeServer("forge_server", "audit", "verify")).toContain(", 0 broken");
});

test.each([
  "drop table jobs",
  "truncate jobs",
  "alter table jobs add column more text",
  "create table mine (n int)",
  "create temporary table mine (n int)",
  "alter table audit_entries disable trigger audit_kept",
  "update audit_entries set action = 'nothing'",
  "delete from audit_entries",
  "truncate audit_entries",
  "delete from migrations",
  "insert into migrations (name, digest) values ('9999_x.sql', '')",
  "select * from pg_authid",
  "create role mine",
  "set role forge_owner",
  "alter role forge_server superuser",
  "copy jobs to '/tmp/jobs'",
])("it can't: %s", async (statement) => {
  await expect(server.query(statement)).rejects.toMatchObject({ code: "42501" });
});

test("it can't connect to another database, and the owner can't be named as the server's role", async () => {
  const others = ["postgres", "temporal", "temporal_visibility", "template1"];
  for (const database of others) {
    const url = new URL(urlAs("forge_server"));
    url.pathname = `/${database}`;
    const other = new pg.Client({ connectionString: url.href });
    await expect(other.connect()).rejects.toMatchObject({ code: "42501" });
  }
  await expect(grantServerRights(urlAs("forge_owner"), "forge_owner")).rejects.toThrow("owns");
});
