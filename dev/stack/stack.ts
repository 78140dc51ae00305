import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { migrate } from "../../platform/postgres/migrate";
import { forAgents, serverDefaults } from "./environments";
import { ownNodeOptions } from "./own-node-options";
import { checkoutRoot } from "./paths";
import { postgresUrl, startPostgres } from "./postgres";
import { ManagedProcess } from "./process";
import { pythonEnvironment, pythonPath } from "./python";
import { claimHome, forgetProcesses, recordProcesses } from "./recorded-processes";
import { type Say, sayOnStderr } from "./say";
import { ensureStackKeys, loadSecrets, type Secrets } from "./secrets";
import { startTemporal } from "./temporal";
import { freePorts, waitFor } from "./wait";

export interface StackOptions {
  home: string;
  /** 0: any free port. */
  port?: number;
  agents?: number;
  /** Additional environment variables for the server and the agents. */
  env?: Record<string, string>;
  /** Runs the Temporal worker as a separate process, as in production. */
  split?: boolean;
  /**
   * Node options for the server, in addition to its own. Default: `--enable-source-maps`, which
   * adds a quarter to the CPU time of the server's start.
   */
  nodeOptions?: string[];
  /** Running servers that the stack uses instead of starting its own. */
  given?: GivenServers;
  say?: Say;
}

export interface GivenServers {
  databaseUrl?: string;
  temporalAddress?: string;
  /** Runs the forge-server in an existing process. */
  host?: ServerHost;
}

export interface ServerHost {
  /** @param env the complete environment. */
  start(env: NodeJS.ProcessEnv, logFile: string): Promise<HostedServer>;
}

export interface HostedServer {
  url: string;
  stop(): Promise<void>;
}

/**
 * A complete Forge on this machine: Postgres, Temporal, a forge-server and agents. Used by `npm
 * start`, the demo and the tests. Each component can be stopped, killed and restarted separately.
 */
export class Stack {
  postgres: ManagedProcess | undefined;
  temporal: ManagedProcess | undefined;
  /** Undefined if the server is also the Temporal worker. */
  temporalWorker: ManagedProcess | undefined;
  readonly otherServers: ManagedProcess[] = [];
  readonly agents = new Map<string, ManagedProcess>();
  apiUrl = "";

  private ownServer: ManagedProcess | undefined;
  private hosted: HostedServer | undefined;
  private readonly home: string;
  private readonly say: Say;
  private readonly secrets: Secrets;
  private readonly given: GivenServers;
  private readonly stopping = new AbortController();
  private starting: Promise<void> = Promise.resolve();
  private ports = { postgres: 0, temporal: 0, ui: 0, http: 0 };

  constructor(private readonly options: StackOptions) {
    this.home = resolve(options.home);
    this.say = options.say ?? sayOnStderr;
    const { TEMPORAL_ADDRESS: temporalAddress } = process.env;
    this.given = { ...(temporalAddress ? { temporalAddress } : {}), ...options.given };
    mkdirSync(this.home, { recursive: true });
    for (const name of claimHome(this.home)) this.say(`Ended ${name} of a killed stack`);
    this.secrets = loadSecrets(this.home);
  }

  /**
   * @throws Error if the forge-server shares its process with other forge-servers
   *   (dev/test/server-host.ts). Such a server can't be killed, frozen or replaced separately.
   */
  get server(): ManagedProcess | undefined {
    if (this.given.host) throw new Error("the forge-server shares its process with others");
    return this.ownServer;
  }

  get databaseUrl(): string {
    if (this.given.databaseUrl) return this.given.databaseUrl;
    return postgresUrl(this.ports.postgres, this.secrets.postgresPassword, "forge");
  }

  get temporalAddress(): string {
    return this.given.temporalAddress ?? `127.0.0.1:${this.ports.temporal}`;
  }

  get temporalUiUrl(): string {
    return `http://127.0.0.1:${this.ports.ui}`;
  }

  get keys(): Pick<Secrets, "adminKey" | "userKey" | "workerKey"> {
    return this.secrets;
  }

  /**
   * The folder of the compiled forge-server that the next start runs. Upgrade tests set it to the
   * folder of another release.
   */
  release = join(checkoutRoot(), "dist");

  get storeDir(): string {
    return join(this.home, "store");
  }

  /**
   * Starts Postgres and Temporal together, then the other components in order. If `stop` is called
   * during the start, `stop` waits for the components that are already starting, and `start` starts
   * no further components.
   */
  async start(): Promise<void> {
    this.starting = this.startComponents();
    await this.starting;
  }

  /** Starts only Postgres, and migrates it. */
  async startDatabase(): Promise<void> {
    await this.takePorts();
    if (!this.given.databaseUrl) await this.startPostgres();
    await this.migrate();
  }

  private async startComponents(): Promise<void> {
    const { signal } = this.stopping;
    await this.takePorts();
    const servers = [
      this.given.databaseUrl ? undefined : this.startPostgres(),
      this.given.temporalAddress ? undefined : this.startTemporal(),
    ];
    // Wait for both even if one fails. Otherwise, stop() could be called before the other server's
    // process exists, and would not end it.
    for (const { reason } of rejected(await Promise.allSettled(servers))) throw reason;
    const steps: (() => Promise<unknown>)[] = [() => this.migrate(), () => this.startServer()];
    if (this.options.split) steps.push(() => this.startTemporalWorker());
    const agents = this.options.agents ?? 1;
    for (let n = 1; n <= agents; n++) steps.push(() => this.startAgent(`local-${n}`));
    for (const step of steps) {
      signal.throwIfAborted();
      await step();
    }
    this.writeStackFile();
  }

  private async takePorts(): Promise<void> {
    const [postgres = 0, temporal = 0, ui = 0, http = 0] = await freePorts(4);
    this.ports = { postgres, temporal, ui, http: this.options.port || http };
  }

  async startPostgres(): Promise<void> {
    this.say("Starting Postgres …");
    await startPostgres({
      dataDir: join(this.home, "postgres"),
      port: this.ports.postgres,
      password: this.secrets.postgresPassword,
      logFile: this.logFile("postgres"),
      onSpawn: (server) => {
        this.postgres = server;
        this.record();
      },
    });
  }

  async startTemporal(): Promise<void> {
    this.say("Starting Temporal …");
    await startTemporal(
      {
        databaseFile: join(this.home, "temporal.db"),
        port: this.ports.temporal,
        uiPort: this.ports.ui,
        logFile: this.logFile("temporal"),
        onSpawn: (server) => {
          this.temporal = server;
          this.record();
        },
      },
      this.say,
      this.stopping.signal,
    );
  }

  /** @param more additional environment variables for this start only. */
  async startServer(more: Record<string, string> = {}): Promise<void> {
    this.say("Starting forge-server …");
    if (this.given.host) {
      const env = { ...this.serverEnvironment(this.ports.http), ...more };
      this.hosted = await this.given.host.start(env, this.logFile("forge-server"));
      this.apiUrl = this.hosted.url;
      return;
    }
    const role = this.options.split ? "api" : "all";
    const onSpawn = (server: ManagedProcess): void => {
      this.ownServer = server;
    };
    this.apiUrl = await this.runServer("forge-server", this.ports.http, role, onSpawn, more);
  }

  async startTemporalWorker(): Promise<void> {
    await this.runServer("temporal-worker", 0, "worker", (server) => {
      this.temporalWorker = server;
    });
  }

  /** Starts a further server process with one role, as in production. Returns its address. */
  async startAnotherServer(
    role: "api" | "worker" = "api",
    more: Record<string, string> = {},
  ): Promise<string> {
    const name = `${role === "api" ? "forge-server" : "temporal-worker"}-${this.otherServers.length + 2}`;
    return await this.runServer(name, 0, role, (server) => this.otherServers.push(server), more);
  }

  private async runServer(
    name: string,
    port: number,
    role: "all" | "api" | "worker",
    onSpawn: (server: ManagedProcess) => void,
    more: Record<string, string> = {},
  ): Promise<string> {
    const urlFile = join(this.home, `${name}.url`);
    rmSync(urlFile, { force: true });
    const program = join(this.release, "bin", "forge-server.js");
    const { nodeOptions = ["--enable-source-maps"] } = this.options;
    const server = ManagedProcess.start({
      name,
      program: process.execPath,
      args: [...ownNodeOptions(program), ...nodeOptions, program, role, "--url-file", urlFile],
      env: { ...this.serverEnvironment(port), ...more },
      logFile: this.logFile(name),
    });
    onSpawn(server);
    this.record();
    const written = (): string | undefined =>
      existsSync(urlFile) ? readFileSync(urlFile, "utf8") : undefined;
    return await waitFor(name, written, { process: server });
  }

  private serverEnvironment(port: number): NodeJS.ProcessEnv {
    return {
      ...process.env,
      FORGE_HOME: this.home,
      FORGE_PORT: String(port),
      ...serverDefaults(`http://127.0.0.1:${this.ports.http}`),
      FORGE_DATABASE_URL: this.databaseUrl,
      TEMPORAL_ADDRESS: this.temporalAddress,
      // The UI's address is unknown if the stack did not start the Temporal server itself.
      ...(this.given.temporalAddress ? {} : { FORGE_TEMPORAL_UI_URL: this.temporalUiUrl }),
      ...this.options.env,
    };
  }

  /** Starts an agent. `name` is its worker id: a second agent with this name is the same worker. */
  async startAgent(name: string, env: Record<string, string> = {}): Promise<ManagedProcess> {
    const python = await pythonEnvironment(this.say);
    const own = this.options.env ?? {};
    const hasBucket = (own.FORGE_STORE_URL ?? process.env.FORGE_STORE_URL) !== undefined;
    this.say(`Starting agent ${name} …`);
    const agent = ManagedProcess.start({
      name: `agent ${name}`,
      program: python,
      args: ["-m", "forge_agent"],
      env: {
        ...forAgents(process.env, hasBucket),
        PYTHONPATH: pythonPath(),
        PYTHONUNBUFFERED: "1",
        SERVICE_API_URL: this.apiUrl,
        SERVICE_API_KEY: this.secrets.workerKey,
        WORKER_ID: name,
        TMPDIR: this.scratchDir(),
        FORGE_AGENT_STATE: join(this.home, "agents"),
        ...forAgents(own, hasBucket),
        ...env,
      },
      logFile: this.logFile(`agent-${name}`),
    });
    this.agents.set(name, agent);
    this.record();
    return agent;
  }

  /** Stops all running components in order, and removes stack.json. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error("stopped while starting"));
    await this.starting.catch(() => undefined);
    rmSync(join(this.home, "stack.json"), { force: true });
    await Promise.all([...this.agents.values()].map((agent) => agent.stop()));
    const servers = [this.ownServer, this.hosted, this.temporalWorker, ...this.otherServers];
    await Promise.all(servers.map((server) => server?.stop()));
    await Promise.all([this.temporal?.stop(), this.postgres?.stop("SIGINT")]);
    forgetProcesses(this.home);
  }

  /** Kills all processes at once, like a power failure. */
  async killAll(): Promise<void> {
    await Promise.all(this.processes().map((process) => process.kill()));
  }

  processes(): ManagedProcess[] {
    return [
      this.postgres,
      this.temporal,
      this.ownServer,
      this.temporalWorker,
      ...this.otherServers,
      ...this.agents.values(),
    ].filter((process): process is ManagedProcess => process?.alive === true);
  }

  /**
   * The agents' folder for temporary files. It is below the stack's home, so that a killed agent
   * leaves no files elsewhere.
   */
  private scratchDir(): string {
    const directory = join(this.home, "tmp");
    mkdirSync(directory, { recursive: true });
    return directory;
  }

  logFile(name: string): string {
    return join(this.home, "logs", `${name}.log`);
  }

  /**
   * Writes stack.json atomically, readable by its owner only. Other programs read it: keep its
   * fields.
   */
  writeStackFile(): void {
    const content = {
      ready: true,
      api_url: this.apiUrl,
      temporal_address: this.temporalAddress,
      temporal_ui_url: this.temporalUiUrl,
      postgres_url: this.databaseUrl,
      admin_api_key: this.secrets.adminKey,
      user_api_key: this.secrets.userKey,
      worker_api_key: this.secrets.workerKey,
      pids: {
        stack: process.pid,
        postgres: this.postgres?.pid,
        temporal: this.temporal?.pid,
        server: this.ownServer?.pid,
        agents: [...this.agents.values()].map((agent) => agent.pid),
      },
    };
    const file = join(this.home, "stack.json");
    writeFileSync(`${file}.part`, JSON.stringify(content, null, 2), { mode: 0o600 });
    renameSync(`${file}.part`, file);
  }

  private async migrate(): Promise<void> {
    await migrate(this.databaseUrl);
    await ensureStackKeys(this.databaseUrl, this.secrets);
  }

  private record(): void {
    recordProcesses(this.home, this.processes());
  }
}

const rejected = (settled: PromiseSettledResult<unknown>[]): PromiseRejectedResult[] =>
  settled.filter((one) => one.status === "rejected");
