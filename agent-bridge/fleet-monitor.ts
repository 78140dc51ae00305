import type { Context } from "../infra/context";
import {
  endAttempt,
  listOverdueAttempts,
  type OverdueAttempt,
  unassign,
} from "../infra/database/attempts";
import { failJob, lockJob } from "../infra/database/jobs";
import { transaction } from "../infra/database/transaction";
import { listHeartbeats, markDead, releaseWorker } from "../infra/database/workers";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";
import { lockWorkerHolding, loseHeldAttempt, OUTCOME_LEASE_S } from "./lose-attempt";
import { SilenceWatch } from "./silence-watch";

/** The worker was heard after all: nothing of its burial may stay. */
class HeardAgain extends Error {
  override readonly name = "HeardAgain";
}

/** Ends what workers leave behind: silence, assignments not fetched, attempts past their deadline. */
export class FleetMonitor implements Part {
  readonly name = "fleet-monitor";
  private readonly watch: SilenceWatch;
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    const timeoutMs = ctx.config.fleet.heartbeatTimeoutS * 1000;
    const sweepMs = Math.min(1_000, timeoutMs / 5);
    this.watch = new SilenceWatch(timeoutMs, sweepMs * 3);
    this.loop = new Loop("fleet-monitor", sweepMs, () => this.sweep(), ctx.logger);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
    let heartbeats: Awaited<ReturnType<typeof listHeartbeats>>;
    try {
      heartbeats = await listHeartbeats(this.ctx.pool);
    } catch (error) {
      // While we could not look, nobody could be heard either.
      this.watch.startOver();
      throw error;
    }
    for (const { worker_id, heartbeat_seq } of this.watch.observe(
      heartbeats,
      this.ctx.clock.nowMs(),
    )) {
      await this.declareDead(worker_id, heartbeat_seq);
    }
    const overdue = await listOverdueAttempts(
      this.ctx.pool,
      this.ctx.config.fleet.assignmentTimeoutS,
    );
    for (const attempt of overdue) await this.endOverdue(attempt);
  }

  /** Marking dead and ending its attempt are one transaction; a heartbeat in between undoes both. */
  private async declareDead(workerId: string, seq: number): Promise<void> {
    const reason = `no heartbeat for ${this.ctx.config.fleet.heartbeatTimeoutS} s`;
    try {
      const lost = await transaction(this.ctx.pool, async (db) => {
        const { lost } = await loseHeldAttempt(db, workerId, reason, async () => true);
        await lockWorkerHolding(db, workerId, undefined);
        if (!(await markDead(db, workerId, seq, reason))) throw new HeardAgain();
        return lost;
      });
      this.ctx.logger.warn(
        { worker_id: workerId, lost_job: lost?.job_id },
        "worker is dead: silent",
      );
      if (lost) this.ctx.signals.emit("outbox", { jobId: lost.job_id, attempt: lost.attempt });
      this.ctx.signals.queueChanged();
    } catch (error) {
      if (!(error instanceof HeardAgain)) throw error;
    }
  }

  private async endOverdue(overdue: OverdueAttempt): Promise<void> {
    if (overdue.state === "assigned") {
      const returned = await unassign(this.ctx.pool, overdue.job_id, overdue.worker_id);
      if (returned) this.ctx.signals.queueChanged();
      return;
    }
    const ended = await transaction(this.ctx.pool, async (db) => {
      const job = await lockJob(db, overdue.job_id);
      const timedOut =
        job?.status === "running" &&
        (await endAttempt(db, {
          jobId: overdue.job_id,
          attempt: overdue.attempt,
          outcome: "timeout",
          error: `attempt ${overdue.attempt} ran past its ${job.timeout_s} s`,
          leaseS: OUTCOME_LEASE_S,
        }));
      if (!timedOut) return false;
      await failJob(db, overdue.job_id, overdue.attempt, "timeout");
      await releaseWorker(db, overdue.worker_id);
      return true;
    });
    if (!ended) return;
    this.ctx.logger.warn({ job_id: overdue.job_id, attempt: overdue.attempt }, "attempt timed out");
    this.ctx.signals.emit("outbox", { jobId: overdue.job_id, attempt: overdue.attempt });
  }
}
