import { Unavailable } from "../core/errors";
import { Batcher } from "../platform/concurrency/batcher";
import type { Context } from "../services/context";
import {
  type Heartbeat,
  type HeartbeatState,
  listRegistered,
  recordHeartbeats,
} from "../services/fleet/heartbeats";
import { recordDenials } from "../services/fleet/overdue-attempts";
import type { WorkerSamples } from "../services/fleet/samples-writer";
import { recordProgress } from "../services/jobs/jobs";
import type { JobMetrics } from "../services/jobs/metrics-writer";
import { holds } from "./commands";

/** A heartbeat's response is not urgent, so many heartbeats share one write. */
const WINDOW_MS = 100;
const MAX_BATCH = 500;

/** How long a heartbeat is retried while another transaction holds its worker's row. */
const LOCK_RETRY_MS = 3_000;
const ROW_LOCKED = Symbol("row locked");
type Outcome = HeartbeatState | undefined | typeof ROW_LOCKED;

export interface JobHeartbeat extends Heartbeat {
  /** The job that the worker says it runs. */
  jobId: string | null;
  /** The worker explicitly says that it runs no job. False if it omits the field. */
  saysNoJob: boolean;
  attempt: number | null;
  progress: number | null;
  /** Metrics that the job reported. */
  metrics: Record<string, number>;
}

/** Writes the heartbeats that this process receives, in batches. */
export class HeartbeatWriter {
  private readonly heartbeats: Batcher<JobHeartbeat, Outcome>;

  constructor(
    private readonly ctx: Context,
    private readonly samples: WorkerSamples,
    private readonly jobMetrics: JobMetrics,
  ) {
    this.heartbeats = new Batcher(
      (heartbeats) => this.recordBatch(heartbeats),
      WINDOW_MS,
      MAX_BATCH,
    );
  }

  /**
   * Records a heartbeat. Returns the worker's state after it; undefined if its owner has not
   * registered it.
   *
   * @throws Unavailable if another transaction, for example of a process that hangs, holds the
   * worker's row.
   */
  async record(heartbeat: JobHeartbeat): Promise<HeartbeatState | undefined> {
    const until = performance.now() + LOCK_RETRY_MS;
    do {
      const outcome = await this.heartbeats.add(heartbeat);
      if (outcome !== ROW_LOCKED) return outcome;
    } while (performance.now() < until);
    throw new Unavailable(
      `worker "${heartbeat.workerId}" is locked by another transaction; send the heartbeat again`,
    );
  }

  private async recordBatch(heartbeats: JobHeartbeat[]): Promise<Outcome[]> {
    this.ctx.metrics.heartbeatBatch.observe(heartbeats.length);
    // If a worker has several heartbeats in the batch, the last one counts, and all get the same
    // response. A heartbeat whose key is not bound to this worker must not replace the worker's
    // own.
    const latest = new Map(heartbeats.map((heartbeat) => [callKeyOf(heartbeat), heartbeat]));
    const rows = await recordHeartbeats(
      this.ctx.pool,
      [...latest.values()],
      this.ctx.config.deployments,
    );
    const states = new Map(rows.map((row) => [keyOf(row.worker_id, row.user_id), row]));
    const rowOf = (heartbeat: JobHeartbeat): HeartbeatState | undefined => {
      const row = states.get(keyOf(heartbeat.workerId, heartbeat.userId));
      return heartbeat.boundKeyId === null || heartbeat.boundKeyId === row?.bound_key_id
        ? row
        : undefined;
    };
    for (const heartbeat of latest.values()) {
      const row = rowOf(heartbeat);
      if (!row) continue;
      this.samples.add(heartbeat);
      this.addMetrics(heartbeat, row);
    }
    const progress = [...latest.values()].flatMap((heartbeat) => {
      const row = rowOf(heartbeat);
      const running = { job_id: heartbeat.jobId, attempt: heartbeat.attempt };
      if (!row || heartbeat.jobId === null || heartbeat.progress === null || !holds(row, running))
        return [];
      return [
        { workerId: heartbeat.workerId, jobId: heartbeat.jobId, progress: heartbeat.progress },
      ];
    });
    if (progress.length > 0) await recordProgress(this.ctx.pool, progress);
    const denials = [...latest.values()].flatMap((heartbeat) => {
      const row = rowOf(heartbeat);
      if (!row || row.held_job_id === null || row.held_denials === null) return [];
      const isOver = row.held_denials > 0 && heartbeat.jobId === row.held_job_id;
      if (!heartbeat.saysNoJob && !isOver) return [];
      return [
        { workerId: heartbeat.workerId, jobId: row.held_job_id, isDenied: heartbeat.saysNoJob },
      ];
    });
    if (denials.length > 0) await recordDenials(this.ctx.pool, denials);
    // A worker is alive again, and its poll may be waiting already.
    if (rows.some((row) => row.was === "dead" && row.status === "idle")) {
      this.ctx.signals.queueChanged();
    }
    const missing = [...latest.values()].filter((heartbeat) => !rowOf(heartbeat));
    // A registered worker whose heartbeat was not recorded has a locked row.
    const registered = missing.length > 0 ? await listRegistered(this.ctx.pool, missing) : [];
    const locked = new Set(registered.map(callKeyOf));
    return heartbeats.map(
      (heartbeat) =>
        rowOf(heartbeat) ?? (locked.has(callKeyOf(heartbeat)) ? ROW_LOCKED : undefined),
    );
  }

  /** Keeps the metrics that a worker reports for the job it holds. */
  private addMetrics(heartbeat: JobHeartbeat, row: HeartbeatState): void {
    const { jobId, attempt, workerId, progress, metrics } = heartbeat;
    const isEmpty = progress === null && Object.keys(metrics).length === 0;
    if (isEmpty || jobId === null || row.held_attempt === null) return;
    if (!holds(row, { job_id: jobId, attempt })) return;
    const held = { job_id: jobId, attempt: row.held_attempt, worker_id: workerId };
    this.jobMetrics.add({ ...held, progress, metrics });
  }
}

/**
 * Includes the tenant: another tenant may send a heartbeat with the same worker id, which is
 * rejected.
 */
const keyOf = (workerId: string, userId: string): string => `${userId}/${workerId}`;

const callKeyOf = ({ workerId, userId, boundKeyId }: JobHeartbeat): string =>
  `${keyOf(workerId, userId)}/${boundKeyId}`;
