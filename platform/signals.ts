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

/** The payload of a notification. Other payloads on the channel are ignored. */
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

/** Identifies an outbox entry that holds an attempt's outcome. The entry was just committed. */
export interface OutcomeKey {
  topic: "outcome";
  jobId: string;
  attempt: number;
  outcome: Outcome;
}

/**
 * Identifies a job's outbox entry that was just committed. An entry with topic `start` starts the
 * job's workflow.
 */
export type JobEntryKey = { topic: "start"; jobId: string } | OutcomeKey;

interface SignalEvents {
  /**
   * Assignments may be possible now. With a group: a job of this requirement group was queued.
   * Without a group: something else changed, for example a worker has returned to service.
   */
  queue: [group?: string];
  /** These workers have an assignment to fetch, or another message waiting. */
  assigned: [workerIds: string[]];
  /** These API keys are no longer valid. */
  revoked: [keyIds: string[]];
  /**
   * A job's outbox entry was committed. Sent only in the committing process. The transaction has
   * leased the entry to that process, so no other process delivers it until the lease ends.
   */
  outbox: [key: JobEntryKey];
  /**
   * A request to wake this pipeline's workflow was committed. Sent only in the committing process.
   * As with `outbox`, the transaction has leased the delivery to that process.
   */
  pipeline: [pipelineId: string];
  /**
   * A request to wake this deployment's workflow was committed. Sent only in the committing
   * process. The transaction has not leased the delivery, so the outbox courier must take the lease
   * first.
   */
  deployment: [deploymentId: string];
  /**
   * This process receives notifications, for the first time or again after a lost connection. It
   * may have missed earlier signals of other processes.
   */
  reconnected: [];
}

/**
 * Wake-up hints between the components of one process and, through NOTIFY, between processes. Every
 * listener also polls, so a lost hint only costs time.
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

  /**
   * Wakes the scheduler of this process only. Other processes have schedulers too, but any one
   * scheduler is enough.
   */
  queueChanged(group?: string): void {
    this.emit("queue", group);
  }

  /** Wakes the waiting polls of these workers, in every process. */
  wake(workerIds: string[]): void {
    this.emit("assigned", workerIds);
    this.assigned(workerIds);
  }

  /**
   * Wakes the waiting polls of these workers in other processes only. The process that made the
   * assignment wakes its own waiting polls itself.
   */
  assigned(workerIds: string[]): void {
    for (const workerId of workerIds) this.assignedHere.add(workerId);
    if (!this.stopped) this.flush ??= setTimeout(() => void this.notify(), COALESCE_MS);
  }

  /**
   * Call this after a key was revoked. Ends waiting requests made with this key, in every process.
   */
  async revoked(keyId: string): Promise<void> {
    this.emit("revoked", [keyId]);
    await this.notifyOthers({ revoked: [keyId] });
  }

  private async notify(): Promise<void> {
    this.flush = undefined;
    // NOTIFY carries at most 8,000 bytes, so send at most 50 workers. In the other processes, the
    // next sweep of the scheduler wakes the polls of the remaining workers.
    const assigned = [...this.assignedHere].slice(0, 50);
    this.assignedHere.clear();
    await this.notifyOthers({ assigned });
  }

  private async notifyOthers(changes: { assigned?: string[]; revoked?: string[] }): Promise<void> {
    const message = JSON.stringify({ from: this.self, ...changes });
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
