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
/** Migrated once. The database of each test file is a copy of it. */
export const TEMPLATE = "forge_template";

/**
 * One Postgres and one Temporal server for all test files. Each file has its own database and task queue
 * there. A file that stops, kills or freezes one of them starts its own (test/support/servers.ts).
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
    // They run in their own process groups, so Ctrl-C does not reach them.
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

  /** Read by test/support/servers.ts. */
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
