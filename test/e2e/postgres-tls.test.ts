import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { CertificateAuthority } from "../support/certificates";
import { runJob, startServersOnly } from "../support/server-process";
import type { TestStack } from "../support/test-stack";

let folder: string;
let ca: CertificateAuthority;
let place: TestStack;
let admin: pg.Client;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "forge-tls-"));
  ca = new CertificateAuthority(folder, "ca");
  place = await startServersOnly(["postgres"]);
  admin = new pg.Client({ connectionString: place.stack.databaseUrl });
  await admin.connect();
  const server = ca.issue("server", "DNS:localhost");
  chmodSync(server.key, 0o600);
  for (const [name, value] of [
    ["ssl_cert_file", server.cert],
    ["ssl_key_file", server.key],
    ["ssl_ca_file", ca.cert],
    ["ssl", "on"],
  ]) {
    await admin.query(`alter system set ${name} = '${value}'`);
  }
  await admin.query("select pg_reload_conf()");
  await waitFor("Postgres to offer TLS", async () => {
    const { rows } = await admin.query<{ ssl: string }>("show ssl");
    return rows[0]?.ssl === "on";
  });
});

afterAll(async () => {
  await admin?.end();
  await place?.end();
  rmSync(folder, { recursive: true, force: true });
});

function urlOf(host: string, parameters: Record<string, string>): string {
  const url = new URL(place.stack.databaseUrl);
  url.hostname = host;
  url.search = new URLSearchParams(parameters).toString();
  return url.href;
}

/** Runs `forge-server migrate` with this URL. @returns its output and exit code. */
const migrateWith = (url: string): Promise<{ code: number; output: string }> =>
  new Promise((resolve) => {
    const program = join(place.stack.release, "bin", "forge-server.js");
    const env = { ...process.env, FORGE_DATABASE_URL: url, FORGE_STORE_DIR: folder };
    execFile(process.execPath, [program, "migrate"], { env }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr });
    });
  });

test("verify-full accepts only the right CA and host name", async () => {
  const verify = { sslmode: "verify-full", sslrootcert: ca.cert };
  const good = await migrateWith(urlOf("localhost", verify));
  expect(good).toEqual({ code: 0, output: "0 migrations applied\n" });

  const otherName = await migrateWith(urlOf("127.0.0.1", verify));
  expect(otherName).toMatchObject({ code: 1, output: expect.stringContaining("does not match") });

  const other = new CertificateAuthority(folder, "other");
  const wrongCa = await migrateWith(urlOf("localhost", { ...verify, sslrootcert: other.cert }));
  expect(wrongCa.code).toBe(1);
  expect(wrongCa.output).toMatch(/unable to verify|self-signed/);

  const systemCas = await migrateWith(urlOf("localhost", { sslmode: "verify-full" }));
  expect(systemCas.code).toBe(1);
});

test("a server does everything over TLS, with a client certificate", async () => {
  const { stack, env } = place;
  const client = ca.issue("postgres", "DNS:postgres");
  chmodSync(client.key, 0o600);
  env.FORGE_DATABASE_URL = urlOf("localhost", {
    sslmode: "verify-full",
    sslrootcert: ca.cert,
    sslcert: client.cert,
    sslkey: client.key,
  });
  await stack.startServer();
  expect(await runJob(stack, "tls")).toBe("completed");
  const { rows } = await admin.query<{ name: string; secure: boolean; client_dn: string }>(
    `select distinct application_name as name, ssl as secure, client_dn
     from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'forge%'
     order by 1`,
  );
  expect(rows).toEqual(
    ["forge", "forge-listen"].map((name) => ({ name, secure: true, client_dn: "/CN=postgres" })),
  );
});
