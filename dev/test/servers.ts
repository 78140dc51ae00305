import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "../../platform/postgres/migrate";
import { checkoutRoot } from "../stack/paths";
import { postgresUrl, startPostgres } from "../stack/postgres";
import { ManagedProcess } from "../stack/process";
import { recordProcesses } from "../stack/recorded-processes";
import { saySilently } from "../stack/say";
import { startTemporal } from "../stack/temporal";
import { freePorts, waitFor } from "../stack/wait";
import { FEWER_COLLECTIONS } from "./node-options";

const PASSWORD = "test";
/** The database that is migrated once. Each test file's database is a copy of it. */
export const TEMPLATE = "forge_template";

/**
 * Runs the servers that test files share: one Postgres server, one Temporal server, and a server
 * host (dev/test/server-host.ts) for each lane. A lane is a worker process of jest. Its server host
 * runs the forge-servers of its test files. Each file has its own database, task queue and
 * forge-server. A file that stops, kills or freezes a server starts a server of its own
 * (test/support/servers.ts).
 */
export class TestServers {
  /** Server processes by name. If a server was started again, only its latest process is kept. */
  private readonly processes = new Map<string, ManagedProcess>();
  private readonly home = mkdtempSync(join(tmpdir(), "forge-test-servers-"));
  private readonly dataDir = join(this.home, "postgres");
  private ports = { postgres: 0, temporal: 0, ui: 0 };
  private hosts: number[] = [];

  constructor(private readonly lanes: number) {}

  async start(): Promise<void> {
    const [postgres = 0, temporal = 0, ui = 0, ...hosts] = await freePorts(3 + this.lanes);
    this.ports = { postgres, temporal, ui };
    this.hosts = hosts;
    const starts = await Promise.allSettled([
      this.startPostgres(),
      this.startTemporal(),
      ...hosts.map((port) => this.startHost(port)),
    ]);
    // Throw only after all starts have ended. Otherwise, stop() could be called before the process
    // of another server exists, and would not end it.
    for (const each of starts) if (each.status === "rejected") throw each.reason;
  }

  /** The last log lines of servers that ended unexpectedly. */
  get ended(): string[] {
    return [...this.processes.values()]
      .filter(({ alive }) => !alive)
      .map((each) => `the shared ${each.name} ended:\n${each.logTail() || "it logged nothing"}`);
  }

  /** Variables for the test files, read by test/support/servers.ts and server-host.ts. */
  get environment(): Record<string, string> {
    return {
      TEST_POSTGRES_URL: this.urlOf("postgres"),
      TEST_TEMPORAL_ADDRESS: process.env.TEMPORAL_ADDRESS ?? `127.0.0.1:${this.ports.temporal}`,
      TEST_SERVER_HOSTS: this.hosts.map((port) => `http://127.0.0.1:${port}`).join(" "),
    };
  }

  async stop(): Promise<void> {
    await Promise.all([...this.processes.values()].map((each) => each.stop("SIGINT")));
    rmSync(this.home, { recursive: true, force: true });
  }

  private readonly note = (server: ManagedProcess): void => {
    this.processes.set(server.name, server);
    recordProcesses(this.home, [...this.processes.values()]);
  };

  private urlOf(database: string): string {
    return postgresUrl(this.ports.postgres, PASSWORD, database, this.dataDir);
  }

  private async startPostgres(): Promise<void> {
    await startPostgres({
      dataDir: this.dataDir,
      port: this.ports.postgres,
      password: PASSWORD,
      logFile: join(this.home, "postgres.log"),
      volatile: true,
      onSpawn: this.note,
    });
    const client = new pg.Client({ connectionString: this.urlOf("postgres") });
    await client.connect();
    await client.query(`create database ${TEMPLATE}`);
    await client.end();
    await migrate(this.urlOf(TEMPLATE));
  }

  private async startHost(port: number): Promise<void> {
    const name = `server-host-${port}`;
    const host = ManagedProcess.start({
      name,
      program: process.execPath,
      args: [FEWER_COLLECTIONS, join(checkoutRoot(), "dist/dev/test/server-host.js"), String(port)],
      logFile: join(this.home, `${name}.log`),
    });
    this.note(host);
    const answers = async (): Promise<boolean> =>
      await fetch(`http://127.0.0.1:${port}`, { method: "DELETE" }).then(
        () => true,
        () => false,
      );
    await waitFor(name, answers, { process: host });
  }

  private async startTemporal(): Promise<void> {
    if (process.env.TEMPORAL_ADDRESS) return;
    await startTemporal(
      {
        port: this.ports.temporal,
        uiPort: this.ports.ui,
        logFile: join(this.home, "temporal.log"),
        onSpawn: this.note,
      },
      saySilently,
      new AbortController().signal,
    );
  }
}
