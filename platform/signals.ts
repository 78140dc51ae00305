import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import pg from "pg";
import { z } from "zod";
import type { Outcome } from "../core/jobs/states";
import type { Logger } from "./logger";
import { execute } from "./postgres/pool";

const CHANNEL = "forge";
const RECONNECT_MS = 500;
const COALESCE_MS = 2;

/** Whatever else is said on the channel is not for us. */
const notification = z.object({
  from: z.string(),
  assigned: z.array(z.string()).default([]),
  revoked: z.array(z.string()).default([]),
});

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A row of the outbox that was just committed. */
export interface OutboxRow {
  jobId: string;
  attempt: number;
  /** How the attempt has ended; none of a job that begins. */
  outcome?: Outcome;
}

interface SignalEvents {
  /** The queue or the fleet changed: somebody may be assigned. */
  queue: [];
  /** These workers have an assignment to fetch, or something else to hear. */
  assigned: [workerIds: string[]];
  /** These keys open nothing any more. */
  revoked: [keyIds: string[]];
  /** A commit left something to tell Temporal. HeartbeatState in this process only: it holds the lease. */
  outbox: [row: OutboxRow];
  /** A pipeline's workflow has something to hear. In this process only, for the same reason. */
  pipeline: [pipelineId: string];
  /** A commit left something for this deployment's workflow to look at. */
  deployment: [deploymentId: string];
  /** Signals of other processes may have been missed. */
  reconnected: [];
}

/**
 * Hints between the parts of one process and, by NOTIFY, between processes. Only hints: every
 * listener also looks by itself now and then, so a lost one costs time and nothing else.
 */
export class Signals extends EventEmitter<SignalEvents> {
  private readonly self = randomUUID();
  private listener: pg.Client | undefined;
  private stopped = false;
  private reconnect: NodeJS.Timeout | undefined;
  private flush: NodeJS.Timeout | undefined;
  private readonly assignedHere = new Set<string>();

  constructor(
    private readonly pool: pg.Pool,
    private readonly connectionString: string,
    private readonly logger: Logger,
  ) {
    super();
    this.setMaxListeners(50);
  }

  start(): void {
    void this.listen();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.reconnect);
    clearTimeout(this.flush);
    await this.listener?.end().catch(() => undefined);
  }

  /** Stays in this process, for every process has a scheduler. */
  queueChanged(): void {
    this.emit("queue");
  }

  /** These workers have something to hear: their parked polls look again, in every process. */
  wake(workerIds: string[]): void {
    this.emit("assigned", workerIds);
    this.assigned(workerIds);
  }

  /** Tells other processes; the one that assigned wakes its own parked polls itself. */
  assigned(workerIds: string[]): void {
    for (const workerId of workerIds) this.assignedHere.add(workerId);
    if (!this.stopped) this.flush ??= setTimeout(() => void this.notify(), COALESCE_MS);
  }

  /** A key was revoked: what waits with it ends, here and in every process. */
  async revoked(keyId: string): Promise<void> {
    this.emit("revoked", [keyId]);
    await this.tellOthers({ revoked: [keyId] });
  }

  private async notify(): Promise<void> {
    this.flush = undefined;
    // NOTIFY carries at most 8,000 bytes; whoever is left out is found by its own sweep.
    const assigned = [...this.assignedHere].slice(0, 50);
    this.assignedHere.clear();
    await this.tellOthers({ assigned });
  }

  private async tellOthers(news: { assigned?: string[]; revoked?: string[] }): Promise<void> {
    const message = JSON.stringify({ from: this.self, ...news });
    await execute(this.pool, "select pg_notify($1, $2)", [CHANNEL, message]).catch(() => undefined);
  }

  private async listen(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.connectionString,
      connectionTimeoutMillis: 3_000,
      keepAlive: true,
      application_name: "forge-listen",
    });
    const lost = (): void => {
      if (this.listener !== client) return;
      this.listener = undefined;
      client.end().catch(() => undefined);
      if (!this.stopped) this.reconnect = setTimeout(() => void this.listen(), RECONNECT_MS);
    };
    this.listener = client;
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ payload }) => this.receive(payload ?? ""));
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
      this.emit("reconnected");
    } catch (error) {
      this.logger.warn({ err: String(error) }, "cannot listen for notifications");
      lost();
    }
  }

  private receive(payload: string): void {
    const message = notification.safeParse(safeJson(payload));
    if (!message.success || message.data.from === this.self) return;
    const { assigned, revoked } = message.data;
    if (assigned.length > 0) this.emit("assigned", assigned);
    if (revoked.length > 0) this.emit("revoked", revoked);
  }
}
