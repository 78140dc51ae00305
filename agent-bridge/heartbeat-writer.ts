import { Unavailable } from "../core/errors";
import { Batcher } from "../platform/concurrency/batcher";
import type { Context } from "../services/context";
import {
  type Heartbeat,
  type HeartbeatState,
  listRegistered,
  recordHeartbeats,
} from "../services/fleet/heartbeats";
import { noteDenials } from "../services/fleet/overdue-attempts";
import type { WorkerSamples } from "../services/fleet/samples-writer";
import { reportProgress } from "../services/jobs/jobs";
import type { JobMetrics } from "../services/jobs/metrics-writer";
import { holds } from "./commands";

/** Nobody waits for a heartbeat's answer, so many of them share one write. */
const WINDOW_MS = 100;
const MAX_BATCH = 500;

/** For so long a heartbeat goes into one batch after the other while another transaction holds its worker's row. */
const HELD_MS = 3_000;
const HELD = Symbol("held");
type Outcome = HeartbeatState | undefined | typeof HELD;

export interface JobHeartbeat extends Heartbeat {
  /** What the worker says it runs, and how far it is. */
  jobId: string | null;
  /** It says that it runs nothing; one that does not tell says neither. */
  saysNoJob: boolean;
  attempt: number | null;
  progress: number | null;
  /** Numbers that the job has reported. */
  metrics: Record<string, number>;
}

/** Writes the heartbeats of all workers that this process hears, a batch at a time. */
export class HeartbeatWriter {
  private readonly heartbeats: Batcher<JobHeartbeat, Outcome>;

  constructor(
    private readonly ctx: Context,
    private readonly samples: WorkerSamples,
    private readonly jobMetrics: JobMetrics,
  ) {
    this.heartbeats = new Batcher((heartbeats) => this.record(heartbeats), WINDOW_MS, MAX_BATCH);
  }

  /**
   * How the worker stands now; undefined when its owner has not registered it.
   *
   * @throws Unavailable where a process that stands still holds the worker's row, as one may that takes its result.
   */
  async hear(heartbeat: JobHeartbeat): Promise<HeartbeatState | undefined> {
    const until = performance.now() + HELD_MS;
    do {
      const heard = await this.heartbeats.add(heartbeat);
      if (heard !== HELD) return heard;
    } while (performance.now() < until);
    throw new Unavailable(
      `worker "${heartbeat.workerId}" is being changed: send the heartbeat again`,
    );
  }

  private async record(heartbeats: JobHeartbeat[]): Promise<Outcome[]> {
    this.ctx.metrics.heartbeatBatch.observe(heartbeats.length);
    // Of two heartbeats of one worker the later one counts; both get the same answer. One whose key is
    // not for this worker must not take the place of the worker's own.
    const latest = new Map(heartbeats.map((heartbeat) => [callOf(heartbeat), heartbeat]));
    const rows = await recordHeartbeats(
      this.ctx.pool,
      [...latest.values()],
      this.ctx.config.deployments,
    );
    const heard = new Map(rows.map((row) => [keyOf(row.worker_id, row.user_id), row]));
    const rowOf = (heartbeat: JobHeartbeat): HeartbeatState | undefined => {
      const row = heard.get(keyOf(heartbeat.workerId, heartbeat.userId));
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
    if (progress.length > 0) await reportProgress(this.ctx.pool, progress);
    const denials = [...latest.values()].flatMap((heartbeat) => {
      const row = rowOf(heartbeat);
      if (!row || row.held_job_id === null || row.held_denials === null) return [];
      const isOver = row.held_denials > 0 && heartbeat.jobId === row.held_job_id;
      if (!heartbeat.saysNoJob && !isOver) return [];
      return [
        { workerId: heartbeat.workerId, jobId: row.held_job_id, isDenied: heartbeat.saysNoJob },
      ];
    });
    if (denials.length > 0) await noteDenials(this.ctx.pool, denials);
    // Alive again, and perhaps parked all the while.
    if (rows.some((row) => row.was === "dead" && row.status === "idle")) {
      this.ctx.signals.queueChanged();
    }
    const missing = [...latest.values()].filter((heartbeat) => !rowOf(heartbeat));
    // They were not recorded, so their rows are held.
    const registered = missing.length > 0 ? await listRegistered(this.ctx.pool, missing) : [];
    const held = new Set(registered.map(callOf));
    return heartbeats.map(
      (heartbeat) => rowOf(heartbeat) ?? (held.has(callOf(heartbeat)) ? HELD : undefined),
    );
  }

  /** What a worker reports of the job that it holds is kept, over time. */
  private addMetrics(heartbeat: JobHeartbeat, row: HeartbeatState): void {
    const { jobId, attempt, workerId, progress, metrics } = heartbeat;
    const isEmpty = progress === null && Object.keys(metrics).length === 0;
    if (isEmpty || jobId === null || row.held_attempt === null) return;
    if (!holds(row, { job_id: jobId, attempt })) return;
    const held = { job_id: jobId, attempt: row.held_attempt, worker_id: workerId };
    this.jobMetrics.add({ ...held, progress, metrics });
  }
}

/** Another tenant may name a worker of this id too, in vain. */
const keyOf = (workerId: string, userId: string): string => `${userId}/${workerId}`;

const callOf = ({ workerId, userId, boundKeyId }: JobHeartbeat): string =>
  `${keyOf(workerId, userId)}/${boundKeyId}`;
