import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "../../infra/database/migrate";
import { postgresUrl, startPostgres } from "../stack/postgres";
import { killGroup, type ManagedProcess } from "../stack/process";
import { saySilently } from "../stack/say";
import { startTemporal } from "../stack/temporal";
import { freePorts } from "../stack/wait";

const PASSWORD = "test";
/** Migrated once; each test file's database is a copy. */
export const TEMPLATE = "forge_template";

/**
 * The Postgres and the Temporal server that test files share, each with a database and a task queue of its
 * own. Those that stop, kill or freeze one of them start their own.
 */
export class TestServers {
  private processes: ManagedProcess[] = [];

  private constructor(
    private readonly home: string,
    private readonly ports: { postgres: number; temporal: number; ui: number },
  ) {}

  static async start(): Promise<TestServers> {
    const home = mkdtempSync(join(tmpdir(), "forge-test-servers-"));
    const [postgres = 0, temporal = 0, ui = 0] = await freePorts(3);
    const servers = new TestServers(home, { postgres, temporal, ui });
    // They are in groups of their own, so that Ctrl-C would leave them behind.
    process.once("exit", () => servers.kill());
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.once(signal, () => process.exit(1));
    try {
      await Promise.all([servers.startPostgres(), servers.startTemporal()]);
    } catch (error) {
      await servers.stop();
      throw error;
    }
    return servers;
  }

  /** How test files find them; test/support/servers.ts reads it. */
  get environment(): Record<string, string> {
    return {
      TEST_POSTGRES_URL: this.urlOf("postgres"),
      TEST_TEMPORAL_ADDRESS: process.env.TEMPORAL_ADDRESS ?? `127.0.0.1:${this.ports.temporal}`,
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.map((each) => each.stop("SIGINT")));
    rmSync(this.home, { recursive: true, force: true });
  }

  private kill(): void {
    for (const each of this.processes) if (each.alive) killGroup(each.pid);
    rmSync(this.home, { recursive: true, force: true });
  }

  private urlOf(database: string): string {
    return postgresUrl(this.ports.postgres, PASSWORD, database);
  }

  private async startPostgres(): Promise<void> {
    await startPostgres({
      dataDir: join(this.home, "postgres"),
      port: this.ports.postgres,
      password: PASSWORD,
      logFile: join(this.home, "postgres.log"),
      volatile: true,
      onSpawn: (server) => this.processes.push(server),
    });
    const client = new pg.Client({ connectionString: this.urlOf("postgres") });
    await client.connect();
    await client.query(`create database ${TEMPLATE}`);
    await client.end();
    await migrate(this.urlOf(TEMPLATE));
  }

  private async startTemporal(): Promise<void> {
    if (process.env.TEMPORAL_ADDRESS) return;
    await startTemporal(
      {
        port: this.ports.temporal,
        uiPort: this.ports.ui,
        logFile: join(this.home, "temporal.log"),
        onSpawn: (server) => this.processes.push(server),
      },
      saySilently,
      new AbortController().signal,
    );
  }
}
