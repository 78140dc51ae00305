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
import type { SamplesWriter } from "../services/fleet/samples-writer";
import { recordProgress } from "../services/jobs/jobs";
import type { MetricsWriter } from "../services/jobs/metrics-writer";
import { holds } from "./commands";

/** Heartbeats that arrive within this time share one write. Their responses are not urgent. */
const WINDOW_MS = 100;
const MAX_BATCH = 500;

/** How long a heartbeat is retried while another transaction locks its worker's row. */
const LOCK_RETRY_MS = 3_000;
const ROW_LOCKED = Symbol("row locked");
type Outcome = HeartbeatState | undefined | typeof ROW_LOCKED;

export interface JobHeartbeat extends Heartbeat {
  /** The job that the worker says it runs. */
  jobId: string | null;
  /** True if the worker sent `job_id: null`: it runs no job. False if it omitted the field. */
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
    private readonly samples: SamplesWriter,
    private readonly jobMetrics: MetricsWriter,
  ) {
    const write = (heartbeats: JobHeartbeat[]) => this.recordBatch(heartbeats);
    this.heartbeats = new Batcher(write, WINDOW_MS, MAX_BATCH);
  }

  /**
   * Records a heartbeat. Returns the worker's new state; undefined if the caller has not registered
   * the worker.
   * @throws Unavailable if another transaction keeps the worker's row locked, for example because
   *   its process hangs.
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
    // Only a worker's last heartbeat in the batch is recorded, and all its heartbeats get the same
    // response. The map's key includes `boundKeyId`: otherwise, a heartbeat with an API key that
    // is not bound to the worker could replace the worker's own heartbeat.
    const latest = new Map(heartbeats.map((heartbeat) => [callKeyOf(heartbeat), heartbeat]));
    const sent = [...latest.values()];
    const { pool, config, signals } = this.ctx;
    const rows = await recordHeartbeats(pool, sent, config.deployments);
    const states = new Map(rows.map((row) => [keyOf(row.worker_id, row.user_id), row]));
    const rowOf = (heartbeat: JobHeartbeat): HeartbeatState | undefined => {
      const row = states.get(keyOf(heartbeat.workerId, heartbeat.userId));
      const isAllowed = heartbeat.boundKeyId === null || heartbeat.boundKeyId === row?.bound_key_id;
      return isAllowed ? row : undefined;
    };
    const recorded = sent.flatMap((heartbeat) => {
      const row = rowOf(heartbeat);
      return row ? [{ heartbeat, row }] : [];
    });
    for (const { heartbeat, row } of recorded) {
      this.samples.add(heartbeat);
      this.addMetrics(heartbeat, row);
    }
    const progress = recorded.flatMap(({ heartbeat, row }) => {
      const { workerId, jobId, attempt, progress } = heartbeat;
      if (jobId === null || progress === null || !holds(row, { job_id: jobId, attempt })) return [];
      return [{ workerId, jobId, progress }];
    });
    if (progress.length > 0) await recordProgress(pool, progress);
    const denials = recorded.flatMap(({ heartbeat, row }) => {
      const { workerId, saysNoJob: isDenied } = heartbeat;
      const { held_job_id: jobId, held_denials: before } = row;
      if (jobId === null || before === null) return [];
      const isOver = before > 0 && heartbeat.jobId === jobId;
      return isDenied || isOver ? [{ workerId, jobId, isDenied }] : [];
    });
    if (denials.length > 0) await recordDenials(pool, denials);
    // If a dead worker has become idle again, its poll may already wait: wake the scheduler.
    if (rows.some((row) => row.was === "dead" && row.status === "idle")) signals.queueChanged();
    const missing = sent.filter((heartbeat) => !rowOf(heartbeat));
    // recordHeartbeats skips unregistered workers and locked rows. So if the heartbeat of a
    // registered worker was not recorded, the worker's row was locked.
    const registered = missing.length > 0 ? await listRegistered(pool, missing) : [];
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
 * A worker's key within a batch. Includes the tenant, because a tenant may send a heartbeat with
 * the id of another tenant's worker. Such a heartbeat must not replace the worker's own heartbeat,
 * and must not get the response to it.
 */
const keyOf = (workerId: string, userId: string): string => `${userId}/${workerId}`;

const callKeyOf = ({ workerId, userId, boundKeyId }: JobHeartbeat): string =>
  `${keyOf(workerId, userId)}/${boundKeyId}`;
