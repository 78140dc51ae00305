import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Connection } from "@temporalio/client";
import pg from "pg";
import { forgeServerOptions } from "../../stack/own-node-options";
import { checkoutRoot } from "../../stack/paths";
import type { ManagedProcess } from "../../stack/process";
import { saySilently } from "../../stack/say";
import { Stack } from "../../stack/stack";
import { Generator } from "./generator";
import { CountingPostgresProxy } from "./postgres-proxy";
import { CountingTemporalProxy } from "./temporal-proxy";

/** Raises the rate limit: the load generator sends more requests than the default allows. */
const UNLIMITED = { FORGE_RATE_LIMIT_PER_MINUTE: "10000000", FORGE_RATE_LIMIT_BURST: "1000000" };

/**
 * Delays the workflows of submitted jobs until after the measurement. Otherwise, they would start
 * during it, or not, depending on how fast the machine is.
 */
export const NO_WORKFLOW_STARTS = { FORGE_WORKFLOW_START_S: "600" };

/** The forge-server of one measurement. */
export interface Forge {
  url: string;
  userKey: string;
  workerKey: string;
  databaseUrl: string;
  pid: number;
  /** Starts another process that only serves the API, as installations with many workers have. */
  startApiServer(): Promise<{ url: string; pid: number }>;
  stop(): Promise<void>;
}

/** A forge-server whose calls to Postgres and Temporal are counted. */
export interface CountedForge extends Forge {
  postgres: CountingPostgresProxy;
  temporal: CountingTemporalProxy;
}

/** What all measurements share: Postgres, Temporal, the peers and the load generator. */
export class Stage {
  readonly generator = Generator.start();
  readonly home = mkdtempSync(join(tmpdir(), "forge-bench-"));
  private readonly servers = new Stack({ home: this.home, agents: 0, say: saySilently });
  private readonly peers: { script: string; child: ChildProcess }[] = [];
  private readonly stacks = new Set<Stack>();
  private readonly peerServers: ManagedProcess[] = [];
  private serial = 0;
  private stopped: Promise<void> | undefined;
  expressUrl = "";
  bareWorkerPid = 0;
  /** The baseline for polls and heartbeats (dev/bench/bare-server.ts), which stores nothing. */
  bareServer = { url: "", pid: 0 };

  async start(): Promise<void> {
    await this.servers.startDatabase();
    await this.servers.startTemporal();
    await this.administer("create database peer");
    this.expressUrl = (await this.startPeer("bare-express.js", this.peerDatabaseUrl)).address;
    const { address: url, pid } = await this.startPeer("../bare-server.js");
    this.bareServer = { url, pid };
    this.bareWorkerPid = (
      await this.startPeer("bare-temporal-worker.js", this.temporalAddress)
    ).pid;
  }

  get temporalAddress(): string {
    return this.servers.temporalAddress;
  }

  get temporalPid(): number {
    return this.servers.temporal?.pid ?? 0;
  }

  get peerDatabaseUrl(): string {
    return this.databaseUrl("peer");
  }

  /** Working directory of the Postgres processes. */
  get postgresFolder(): string {
    return join(this.home, "postgres");
  }

  /**
   * Starts a forge-server with its own database and task queue, so that measurements don't share
   * jobs.
   */
  async startForge(env: Record<string, string> = {}): Promise<Forge> {
    return await this.startForgeOn(await this.createDatabase(), env);
  }

  async startCountedForge(): Promise<CountedForge> {
    const name = await this.createDatabase();
    const postgres = await CountingPostgresProxy.start(this.databaseUrl(name));
    let temporal: CountingTemporalProxy | undefined;
    const stopProxies = (): void => {
      postgres.stop();
      temporal?.stop();
    };
    try {
      temporal = await CountingTemporalProxy.start(this.temporalAddress);
      const forge = await this.startForgeOn(name, {
        FORGE_DATABASE_URL: postgres.url,
        TEMPORAL_ADDRESS: temporal.address,
        // The worker sends no heartbeats, and must not be marked dead.
        FORGE_HEARTBEAT_TIMEOUT_S: "600",
      });
      return {
        ...forge,
        postgres,
        temporal,
        stop: () => forge.stop().finally(stopProxies),
      };
    } catch (error) {
      stopProxies();
      throw error;
    }
  }

  async versions(): Promise<{ postgres: string; temporal: string }> {
    const [row] = await this.administer<{ server_version: string }>("show server_version");
    const connection = await Connection.connect({ address: this.temporalAddress });
    const { serverVersion } = await connection.workflowService.getSystemInfo({});
    await connection.close();
    return { postgres: row?.server_version ?? "", temporal: serverVersion ?? "" };
  }

  private async createDatabase(): Promise<string> {
    this.serial += 1;
    const name = `bench_${this.serial}`;
    await this.administer(`create database ${name} template forge`);
    return name;
  }

  private async startForgeOn(name: string, env: Record<string, string>): Promise<Forge> {
    const { temporalAddress } = this;
    const stack = new Stack({
      home: join(this.home, name),
      agents: 0,
      say: saySilently,
      env: { ...UNLIMITED, FORGE_TASK_QUEUE: name, ...env },
      given: { databaseUrl: this.databaseUrl(name), temporalAddress },
      // Run the server without source maps, as the container image does.
      nodeOptions: [],
    });
    await this.startStack(stack);
    return {
      url: stack.apiUrl,
      userKey: stack.keys.userKey,
      workerKey: stack.keys.workerKey,
      databaseUrl: stack.databaseUrl,
      pid: stack.server?.pid ?? 0,
      startApiServer: async () => {
        this.assertRunning();
        const url = await stack.startAnotherServer();
        return { url, pid: stack.otherServers.at(-1)?.pid ?? 0 };
      },
      stop: async () => {
        await this.stopStack(stack);
        await this.administer(`drop database ${name} with (force)`);
      },
    };
  }

  /** Starts a stack that `stop` ends. A stack that fails to start is stopped at once. */
  async startStack(stack: Stack): Promise<void> {
    this.assertRunning();
    this.stacks.add(stack);
    try {
      await stack.start();
    } catch (error) {
      await this.stopStack(stack);
      throw error;
    }
  }

  async stopStack(stack: Stack): Promise<void> {
    await stack.stop();
    this.stacks.delete(stack);
  }

  /** @throws Error if `stop` was called: it would not end what starts now. */
  private assertRunning(): void {
    if (this.isStopping) throw new Error("the bench was interrupted");
  }

  /** Makes sure that `stop` ends a peer's server. */
  readonly stopLater = (server: ManagedProcess): void => {
    this.peerServers.push(server);
    if (this.isStopping) void server.stop();
  };

  async stopPeerServers(): Promise<void> {
    await Promise.all(this.peerServers.map((server) => server.stop()));
  }

  /** Ends the peers that run these scripts. */
  stopPeers(scripts: string[]): void {
    for (const { script, child } of this.peers) if (scripts.includes(script)) child.kill("SIGKILL");
  }

  get isStopping(): boolean {
    return this.stopped !== undefined;
  }

  /** Ends everything. Further calls wait for the first one. */
  async stop(): Promise<void> {
    this.stopped ??= this.end();
    await this.stopped;
  }

  private async end(): Promise<void> {
    this.generator.stop();
    for (const { child } of this.peers) child.kill("SIGKILL");
    await this.stopPeerServers();
    await Promise.all([...this.stacks].map((stack) => stack.stop()));
    await this.servers.stop();
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Returns the URL of a new database. */
  async createPeerDatabase(peer: string): Promise<string> {
    const name = `peer_${peer.toLowerCase().replaceAll("-", "_")}`;
    await this.administer(`drop database if exists ${name} with (force)`);
    await this.administer(`create database ${name}`);
    return this.databaseUrl(name);
  }

  private databaseUrl(name: string): string {
    const url = new URL(this.servers.databaseUrl);
    url.pathname = `/${name}`;
    return url.href;
  }

  private async administer<R extends pg.QueryResultRow>(statement: string): Promise<R[]> {
    const client = new pg.Client({ connectionString: this.databaseUrl("postgres") });
    await client.connect();
    try {
      return (await client.query<R>(statement)).rows;
    } finally {
      await client.end();
    }
  }

  /**
   * Starts a peer and waits until it sends its address.
   *
   * @throws Error if the peer's process ends before it sends the address.
   */
  async startPeer(script: string, argument = "", env: Record<string, string> = {}): Promise<Peer> {
    this.assertRunning();
    const program = join(checkoutRoot(), "dist/dev/bench/outside", script);
    // The peers' packages may use deprecated features of pg.
    const execArgv = ["--no-deprecation", ...forgeServerOptions()];
    const child = fork(program, [argument], { execArgv, env: { ...process.env, ...env } });
    this.peers.push({ script, child });
    const ended = once(child, "exit").then(() => {
      throw new Error(`${script} ended before it was ready`);
    });
    ended.catch(() => undefined);
    const [address] = (await Promise.race([once(child, "message"), ended])) as [string];
    return { address, pid: child.pid ?? 0 };
  }
}

interface Peer {
  address: string;
  pid: number;
}
