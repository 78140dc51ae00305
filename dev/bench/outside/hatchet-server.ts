import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { GoPrograms } from "../../stack/go-programs";
import { ManagedProcess } from "../../stack/process";
import type { Say } from "../../stack/say";
import { freePorts, waitFor } from "../../stack/wait";

const PROGRAMS = new GoPrograms(
  "hatchet",
  ["hatchet-lite", "hatchet-admin", "hatchet-migrate"].map(
    (program) => `github.com/hatchet-dev/hatchet/cmd/${program}`,
  ),
);

interface Options {
  /** Folder for the server's configuration and log. */
  home: string;
  /** An empty database. */
  databaseUrl: string;
  say: Say;
  /**
   * Called as soon as the server's process has been started, before the server is ready. The caller
   * of `start` must end the process, even if `start` fails.
   */
  onSpawn(process: ManagedProcess): void;
}

/** Whether a Hatchet server is built, or can be built. */
export const canHaveHatchet = (): boolean => PROGRAMS.available;

/** A Hatchet server with its default settings, and with Postgres as its message queue. */
export class HatchetServer {
  private constructor(
    readonly process: ManagedProcess,
    /** Environment variables for Hatchet's clients. */
    readonly clientEnvironment: Record<string, string>,
  ) {}

  static async start({ home, databaseUrl, say, onSpawn }: Options): Promise<HatchetServer> {
    // The linker option sets the server's version. Without it, Hatchet's SDK treats the server as
    // an old release that is no longer supported, and some starts of a worker fail.
    const programs = await PROGRAMS.build(
      "Building a Hatchet server with Go (once, usually 2 minutes on 2 cores) …",
      say,
      `-s -w -X main.Version=v${PROGRAMS.version}`,
    );
    const configuration = join(home, "configuration");
    mkdirSync(configuration, { recursive: true });
    const [api = 0, grpc = 0, site = 0, runtime = 0] = await freePorts(4);
    const env = {
      ...process.env,
      DATABASE_URL: withoutTls(databaseUrl),
      SERVER_MSGQUEUE_KIND: "postgres",
      SERVER_PORT: String(api),
      SERVER_URL: `http://127.0.0.1:${runtime}`,
      SERVER_GRPC_PORT: String(grpc),
      SERVER_GRPC_BIND_ADDRESS: "127.0.0.1",
      SERVER_GRPC_BROADCAST_ADDRESS: `127.0.0.1:${grpc}`,
      SERVER_GRPC_INSECURE: "true",
      SERVER_HEALTHCHECK: "false",
      // Off, because it sends data to Hatchet's servers.
      SERVER_SECURITY_CHECK_ENABLED: "false",
      SERVER_AUTH_COOKIE_DOMAIN: "localhost",
      SERVER_LOGGER_LEVEL: "warn",
      DATABASE_LOGGER_LEVEL: "warn",
      LITE_FRONTEND_PORT: String(site),
      LITE_RUNTIME_PORT: String(runtime),
      // The folder with the dashboard's files. The benchmark does not need the dashboard, so it
      // passes another folder.
      LITE_STATIC_ASSET_DIR: configuration,
    };
    const run = async (program: string, ...args: string[]): Promise<string> =>
      (await promisify(execFile)(join(programs, program), args, { env, cwd: home })).stdout;
    await run("hatchet-migrate");
    const generated = ["--generated-config-dir", configuration];
    await run("hatchet-admin", "quickstart", "--skip", "certs", ...generated);
    const token = await run("hatchet-admin", "token", "create", "--config", configuration);
    const server = ManagedProcess.start({
      name: "hatchet",
      program: join(programs, "hatchet-lite"),
      args: ["--config", configuration],
      env,
      cwd: home,
      logFile: join(home, "hatchet.log"),
    });
    onSpawn(server);
    await waitFor("Hatchet", () => canConnect(grpc), { process: server });
    return new HatchetServer(server, {
      HATCHET_CLIENT_TOKEN: token.trim(),
      HATCHET_CLIENT_HOST_PORT: `127.0.0.1:${grpc}`,
      HATCHET_CLIENT_API_URL: `http://127.0.0.1:${runtime}`,
      HATCHET_CLIENT_TLS_STRATEGY: "none",
      HATCHET_CLIENT_LOG_LEVEL: "ERROR",
    });
  }
}

/** Hatchet's migrations ask for TLS otherwise. */
function withoutTls(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.set("sslmode", "disable");
  return url.href;
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
