import { uptime } from "node:os";
import type { Context } from "../context";
import { endPlacementsOfLostWorker } from "../deployments/placements";
import { lockHeldAttempt, unassign } from "../jobs/attempts";
import { endAttempt } from "../jobs/end-attempt";
import { lockJob } from "../jobs/jobs";
import { LoopComponent } from "../loop-component";
import { listWorkerCounters, markDead, markUnresponsive, type WorkerCounters } from "./heartbeats";
import { announceLoss, lockWorkerHolding, markHeldAttemptLost } from "./lose-attempt";
import {
  isDenied,
  listNotRun,
  listOverdue,
  listUnfetched,
  type OverdueAttempt,
} from "./overdue-attempts";
import { Presence } from "./presence";
import { Reachability } from "./reachability";
import { strikeWorker } from "./strikes";
import { type Counter, UnchangedCounters } from "./unchanged-counters";
import { releaseWorker, takeOutOfService } from "./workers";

/** Thrown to roll back marking a worker dead: a heartbeat arrived in the meantime. */
class HeartbeatArrived extends Error {
  override readonly name = "HeartbeatArrived";
}

/**
 * Sets workers that send no heartbeats to `dead` (unless they are being set up), and idle workers
 * that don't poll to `unresponsive`. Withdraws assignments that were not fetched. Ends attempts
 * that are overdue or that their worker does not run.
 */
export class FleetMonitor extends LoopComponent {
  private readonly heartbeats: UnchangedCounters;
  private readonly polls: UnchangedCounters;
  private readonly presence: Presence;
  private readonly reachability: Reachability;
  /** The sum of all heartbeat counters at the last sweep. */
  private heartbeatsBefore = 0;
  /** `steadySinceMs` of the clock watch (services/clock) at the last sweep. See `readCounters`. */
  private steadySinceMs = 0;

  constructor(ctx: Context) {
    const { heartbeatTimeoutS, pollTimeoutS } = ctx.config.fleet;
    const sweepMs = Math.min(2_000, (heartbeatTimeoutS * 1000) / 15, (pollTimeoutS * 1000) / 15);
    super(ctx, "fleet-monitor", sweepMs);
    this.heartbeats = new UnchangedCounters(heartbeatTimeoutS * 1000, sweepMs * 3);
    this.polls = new UnchangedCounters(pollTimeoutS * 1000, sweepMs * 3);
    this.presence = new Presence(sweepMs * 3);
    this.reachability = new Reachability(heartbeatTimeoutS * 1000);
  }

  protected async run(): Promise<void> {
    const counters = await this.readCounters();
    const nowMs = this.ctx.clock.nowMs();
    const heartbeats = counters.map(({ worker_id: id, heartbeat_seq: seq }) => ({ id, seq }));
    const polls = counters.flatMap(({ worker_id: id, poll_seq: seq }) =>
      seq === null ? [] : { id, seq },
    );
    this.recordTraffic(heartbeats, nowMs);
    for (const silent of this.heartbeats.observe(heartbeats, nowMs)) {
      // If there is only one worker, the monitor can't distinguish a silent worker from a broken
      // network. It marks the worker dead anyway: a mistake costs only the worker's attempt and
      // placements, which Forge starts again.
      if (heartbeats.length > 1 && !this.reachability.isSilent(silent.sinceMs, nowMs)) continue;
      await this.isolate(silent.id, () => this.declareDead(silent));
    }
    for (const unresponsive of this.polls.observe(polls, nowMs)) {
      await this.isolate(unresponsive.id, () => this.declareUnresponsive(unresponsive));
    }

    const { assignmentTimeoutS, deadlineGraceS } = this.ctx.config.fleet;
    for (const unfetched of await listUnfetched(this.ctx.pool, assignmentTimeoutS)) {
      await this.isolate(unfetched.worker_id, () => this.withdraw(unfetched));
    }
    for (const denied of await listNotRun(this.ctx.pool, assignmentTimeoutS)) {
      await this.isolate(denied.worker_id, () => this.markNotRunLost(denied));
    }
    // After an outage, workers get a grace period to deliver the results that they could not send.
    const graceMs = deadlineGraceS * 1000;
    if (this.presence.forMs < graceMs || !this.reachability.wasReachable(graceMs, nowMs)) return;
    for (const overdue of await this.listOverdue()) {
      await this.isolate(overdue.worker_id, () => this.endOverdue(overdue));
    }
  }

  private recordTraffic(workers: Counter[], nowMs: number): void {
    const { lastRequestMs } = this.ctx.traffic;
    if (lastRequestMs !== undefined) this.reachability.record(lastRequestMs);
    // If the sum of all heartbeats has grown since the last check, some API process has recorded a
    // heartbeat, so workers can reach Forge. A smaller sum only means that `workers` no longer
    // includes some worker.
    const heartbeats = workers.reduce((sum, { seq }) => sum + seq, 0);
    if (heartbeats > this.heartbeatsBefore) this.reachability.record(nowMs);
    this.heartbeatsBefore = heartbeats;
  }

  /** Logs an error, so that a failure for one worker does not stop the sweep. */
  private async isolate(workerId: string, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) =>
      this.ctx.logger.error({ worker_id: workerId, err: String(error) }, "fleet monitor failed"),
    );
  }

  private async readCounters(): Promise<WorkerCounters[]> {
    try {
      await this.ctx.clockWatch.check();
      const counters = await listWorkerCounters(this.ctx.pool);
      // If steadySinceMs has changed, this process may have been suspended. The monotonic clock may
      // have stopped meanwhile, so `presence` can't notice the gap by itself.
      const { steadySinceMs } = this.ctx.clockWatch;
      if (steadySinceMs !== this.steadySinceMs) this.presence.interrupt();
      this.steadySinceMs = steadySinceMs;
      this.presence.record(uptime() * 1000);
      return counters;
    } catch (error) {
      // While the database is unreachable, heartbeats can't be recorded either, so unchanged
      // counters prove nothing.
      this.heartbeats.reset();
      this.polls.reset();
      this.presence.interrupt();
      throw error;
    }
  }

  /**
   * Returns the overdue attempts. Returns none if the database's clock may have been set during the
   * read: the clock watch then moves the deadlines, so the attempts that were read may not be
   * overdue.
   */
  private async listOverdue(): Promise<OverdueAttempt[]> {
    const { clockWatch, pool } = this.ctx;
    const { revision } = clockWatch;
    const overdue = await listOverdue(pool);
    if (overdue.length === 0) return [];
    return (await clockWatch.isUnchangedSince(revision)) ? overdue : [];
  }

  /**
   * Marks the worker dead, and ends its attempt and its placements, in one transaction. Rolls all
   * back if a heartbeat arrives in the meantime.
   */
  private async declareDead({ id: workerId, seq }: Counter): Promise<void> {
    const reason = `no heartbeat for ${this.ctx.config.fleet.heartbeatTimeoutS} s`;
    try {
      const { firstLeaseS: leaseS } = this.ctx.config.outbox;
      const { lost, deployments } = await this.ctx.clockWatch.transaction(async (db) => {
        const loss = { workerId, reason, leaseS };
        const { lost } = await markHeldAttemptLost(db, loss, async () => true);
        await lockWorkerHolding(db, workerId, undefined);
        if (!(await markDead(db, workerId, seq, reason))) throw new HeartbeatArrived();
        if (lost) await strikeWorker(db, workerId, lost.job_id);
        return { lost, deployments: await endPlacementsOfLostWorker(db, workerId) };
      });
      const fields = { worker_id: workerId, lost_job: lost?.job_id };
      this.ctx.logger.warn(fields, "worker lost: no heartbeat");
      this.ctx.metrics.workersLost.inc({ reason: "silent" });
      announceLoss(this.ctx, { lost, deployments });
      this.ctx.signals.queueChanged();
    } catch (error) {
      if (!(error instanceof HeartbeatArrived)) throw error;
    }
  }

  private async declareUnresponsive({ id: workerId, seq }: Counter): Promise<void> {
    const reason = `no poll for ${this.ctx.config.fleet.pollTimeoutS} s, although it sends heartbeats`;
    if (!(await markUnresponsive(this.ctx.pool, workerId, seq, reason))) return;
    this.ctx.logger.warn({ worker_id: workerId }, "worker marked unresponsive: no polls");
    this.ctx.metrics.workersLost.inc({ reason: "deaf" });
    this.ctx.signals.queueChanged();
  }

  private async withdraw({ job_id: jobId, worker_id: workerId }: OverdueAttempt): Promise<void> {
    if (!(await unassign(this.ctx.pool, jobId, workerId))) return;
    this.ctx.metrics.workersLost.inc({ reason: "not_fetched" });
    this.ctx.signals.queueChanged();
  }

  /**
   * Marks a dispatched attempt lost if its worker keeps reporting in its heartbeats that it runs no
   * job. Another attempt can then start.
   */
  private async markNotRunLost({ worker_id: workerId }: OverdueAttempt): Promise<void> {
    const { firstLeaseS: leaseS } = this.ctx.config.outbox;
    const loss = { workerId, reason: "its heartbeats report no job", leaseS };
    const lost = await this.ctx.clockWatch.transaction(async (db) => {
      const { lost } = await markHeldAttemptLost(db, loss, async (held) => isDenied(held));
      if (!lost) return undefined;
      await lockWorkerHolding(db, workerId, undefined);
      await releaseWorker(db, workerId, { succeeded: false });
      return lost;
    });
    if (!lost) return;
    const fields = { worker_id: workerId, job_id: lost.job_id, attempt: lost.attempt };
    this.ctx.logger.warn(fields, "attempt marked lost: its worker does not run it");
    this.ctx.metrics.workersLost.inc({ reason: "does_not_run_it" });
    announceLoss(this.ctx, { lost });
    this.ctx.signals.queueChanged();
  }

  /**
   * Ends an attempt whose worker has not stopped by the deadline or within the grace period of a
   * cancel.
   */
  private async endOverdue(overdue: OverdueAttempt): Promise<void> {
    const { job_id: jobId, attempt, worker_id: workerId } = overdue;
    const outcome = await this.ctx.clockWatch.transaction(async (db) => {
      const job = await lockJob(db, jobId);
      const held = await lockHeldAttempt(db, workerId);
      if (!job || held?.job_id !== jobId || held.attempt !== attempt) return undefined;
      const outcome = await endAttempt(db, job, held, {
        outcome: "timeout",
        error: `attempt ${attempt} exceeded its time-out of ${job.timeout_s} s`,
        leaseS: this.ctx.config.outbox.firstLeaseS,
      });
      await releaseWorker(db, workerId, { succeeded: false });
      if (outcome === "timeout") await strikeWorker(db, workerId, jobId);
      else await takeOutOfService(db, workerId, "unresponsive", this.cancelIgnored(jobId));
      return outcome;
    });
    if (!outcome) return;
    const reason = outcome === "timeout" ? "past_deadline" : "past_cancel";
    this.ctx.metrics.workersLost.inc({ reason });
    this.ctx.logger.warn({ job_id: jobId, attempt, worker_id: workerId, outcome }, "attempt ended");
    this.ctx.signals.emit("outbox", { topic: "outcome", jobId, attempt, outcome });
  }

  private cancelIgnored(jobId: string): string {
    return `it did not stop ${jobId} within ${this.ctx.config.jobs.cancelGraceS} s after the cancel`;
  }
}
