import { uptime } from "node:os";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { endPlacementsOfLostWorker } from "../deployments/placements";
import { lockHeldAttempt, unassign } from "../jobs/attempts";
import { endAttempt } from "../jobs/end-attempt";
import { lockJob } from "../jobs/jobs";
import { lockWorkerHolding, markHeldAttemptLost, owedFor } from "../jobs/mark-lost";
import { type Counted, HeartbeatTimeouts } from "./heartbeat-timeouts";
import { listSignsOfLife, markDead, markDeaf, type SignsOfLife } from "./heartbeats";
import {
  isDenied,
  listDenied,
  listOverdue,
  listUnfetched,
  type OverdueAttempt,
} from "./overdue-attempts";
import { Presence } from "./presence";
import { Reachability } from "./reachability";
import { strikeWorker } from "./strikes";
import { benchWorker, releaseWorker } from "./workers";

/** The worker was heard after all: nothing of its burial may stay. */
class HeardAgain extends Error {
  override readonly name = "HeardAgain";
}

/** Ends what workers leave behind: silence, deafness, assignments not fetched, attempts past their time. */
export class FleetMonitor implements Component {
  readonly name = "fleet-monitor";
  private readonly heartbeats: HeartbeatTimeouts;
  private readonly polls: HeartbeatTimeouts;
  private readonly presence: Presence;
  private readonly network: Reachability;
  /** The sum of all heartbeat numbers at the last look. */
  private heartbeatsBefore = 0;
  /** Of the clock watch, at the last look. */
  private evenSinceMs = 0;
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    const { heartbeatTimeoutS, deafAfterS } = ctx.config.fleet;
    const sweepMs = Math.min(2_000, (heartbeatTimeoutS * 1000) / 15, (deafAfterS * 1000) / 15);
    this.heartbeats = new HeartbeatTimeouts(heartbeatTimeoutS * 1000, sweepMs * 3);
    this.polls = new HeartbeatTimeouts(deafAfterS * 1000, sweepMs * 3);
    this.presence = new Presence(sweepMs * 3);
    this.network = new Reachability(heartbeatTimeoutS * 1000);
    this.loop = new Loop("fleet-monitor", sweepMs, () => this.sweep(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
    const signs = await this.look();
    const nowMs = this.ctx.clock.nowMs();
    const heartbeats = signs.map(({ worker_id: id, heartbeat_seq: seq }) => ({ id, seq }));
    const asked = signs.flatMap(({ worker_id: id, poll_seq: seq }) =>
      seq === null ? [] : { id, seq },
    );
    this.noteRequests(heartbeats, nowMs);
    for (const silent of this.heartbeats.observe(heartbeats, nowMs)) {
      // A fleet of one worker can't be told from a network that is cut; then that is one job.
      if (heartbeats.length > 1 && !this.network.provesSilence(silent.sinceMs, nowMs)) continue;
      await this.attempt(silent.id, () => this.declareDead(silent));
    }
    for (const deaf of this.polls.observe(asked, nowMs)) {
      await this.attempt(deaf.id, () => this.declareDeaf(deaf));
    }

    const { assignmentTimeoutS, deadlineGraceS } = this.ctx.config.fleet;
    for (const unfetched of await listUnfetched(this.ctx.pool, assignmentTimeoutS)) {
      await this.attempt(unfetched.worker_id, () => this.takeBack(unfetched));
    }
    for (const denied of await listDenied(this.ctx.pool, assignmentTimeoutS)) {
      await this.attempt(denied.worker_id, () => this.markDeniedLost(denied));
    }
    // After an outage a worker has the grace to bring what it finished meanwhile.
    const graceMs = deadlineGraceS * 1000;
    if (this.presence.forMs < graceMs || !this.network.wasReachable(graceMs, nowMs)) return;
    for (const overdue of await this.listOverdue()) {
      await this.attempt(overdue.worker_id, () => this.endOverdue(overdue));
    }
  }

  private noteRequests(workers: Counted[], nowMs: number): void {
    const { lastRequestMs } = this.ctx.traffic;
    if (lastRequestMs !== undefined) this.network.record(lastRequestMs);
    // A smaller sum: a worker is dead, or gone.
    const heartbeats = workers.reduce((sum, { seq }) => sum + seq, 0);
    if (heartbeats > this.heartbeatsBefore) this.network.record(nowMs);
    this.heartbeatsBefore = heartbeats;
  }

  /** One that can't be dealt with must not keep the others from being. */
  private async attempt(workerId: string, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) =>
      this.ctx.logger.error({ worker_id: workerId, err: String(error) }, "fleet monitor"),
    );
  }

  private async look(): Promise<SignsOfLife[]> {
    try {
      await this.ctx.clockWatch.look();
      const signs = await listSignsOfLife(this.ctx.pool);
      // This process may have stood still, and its own time with it.
      const { evenSinceMs } = this.ctx.clockWatch;
      if (evenSinceMs !== this.evenSinceMs) this.presence.interrupt();
      this.evenSinceMs = evenSinceMs;
      this.presence.look(uptime() * 1000);
      return signs;
    } catch (error) {
      // While we could not look, nobody could be heard either.
      this.heartbeats.startOver();
      this.polls.startOver();
      this.presence.interrupt();
      throw error;
    }
  }

  /** None where the clock was set meanwhile, or may have been: then the deadlines have moved, too. */
  private async listOverdue(): Promise<OverdueAttempt[]> {
    const { clockWatch, pool } = this.ctx;
    const { doubts } = clockWatch;
    const overdue = await listOverdue(pool);
    if (overdue.length === 0) return [];
    return (await clockWatch.holdsSince(doubts)) ? overdue : [];
  }

  /** Marking dead and ending its attempt are one transaction; a heartbeat in between undoes both. */
  private async declareDead({ id: workerId, seq }: Counted): Promise<void> {
    const reason = `no heartbeat for ${this.ctx.config.fleet.heartbeatTimeoutS} s`;
    try {
      const { firstLeaseS: leaseS } = this.ctx.config.outbox;
      const { lost, deployments } = await this.ctx.clockWatch.transaction(async (db) => {
        const losing = { workerId, reason, leaseS };
        const { lost } = await markHeldAttemptLost(db, losing, async () => true);
        await lockWorkerHolding(db, workerId, undefined);
        if (!(await markDead(db, workerId, seq, reason))) throw new HeardAgain();
        if (lost) await strikeWorker(db, workerId, lost.job_id);
        return { lost, deployments: await endPlacementsOfLostWorker(db, workerId) };
      });
      const line = { worker_id: workerId, lost_job: lost?.job_id };
      this.ctx.logger.warn(line, "worker is dead: silent");
      this.ctx.metrics.workersLost.inc({ reason: "silent" });
      if (lost) this.ctx.signals.emit("outbox", owedFor(lost));
      for (const id of deployments) this.ctx.signals.emit("deployment", id);
      this.ctx.signals.queueChanged();
    } catch (error) {
      if (!(error instanceof HeardAgain)) throw error;
    }
  }

  private async declareDeaf({ id: workerId, seq }: Counted): Promise<void> {
    const reason = `it heartbeats, but has not asked for work for ${this.ctx.config.fleet.deafAfterS} s`;
    if (!(await markDeaf(this.ctx.pool, workerId, seq, reason))) return;
    this.ctx.logger.warn({ worker_id: workerId }, "worker is deaf");
    this.ctx.metrics.workersLost.inc({ reason: "deaf" });
    this.ctx.signals.queueChanged();
  }

  private async takeBack({ job_id: jobId, worker_id: workerId }: OverdueAttempt): Promise<void> {
    if (!(await unassign(this.ctx.pool, jobId, workerId))) return;
    this.ctx.metrics.workersLost.inc({ reason: "not_fetched" });
    this.ctx.signals.queueChanged();
  }

  /** It was handed out, and its worker never got it, or forgot it: it goes to whoever asks next. */
  private async markDeniedLost({ worker_id: workerId }: OverdueAttempt): Promise<void> {
    const losing = {
      workerId,
      reason: "its heartbeats say that it runs no job",
      leaseS: this.ctx.config.outbox.firstLeaseS,
    };
    const lost = await this.ctx.clockWatch.transaction(async (db) => {
      const { lost } = await markHeldAttemptLost(db, losing, async (held) => isDenied(held));
      if (!lost) return undefined;
      await lockWorkerHolding(db, workerId, undefined);
      await releaseWorker(db, workerId, { succeeded: false });
      return lost;
    });
    if (!lost) return;
    const line = { worker_id: workerId, job_id: lost.job_id, attempt: lost.attempt };
    this.ctx.logger.warn(line, "attempt is lost: its worker does not run it");
    this.ctx.metrics.workersLost.inc({ reason: "does_not_run_it" });
    this.ctx.signals.emit("outbox", owedFor(lost));
    this.ctx.signals.queueChanged();
  }

  /** Past its deadline, or past its cancel's grace: the worker has not stopped, so it is taken from it. */
  private async endOverdue(overdue: OverdueAttempt): Promise<void> {
    const { job_id: jobId, attempt, worker_id: workerId } = overdue;
    const outcome = await this.ctx.clockWatch.transaction(async (db) => {
      const job = await lockJob(db, jobId);
      const held = await lockHeldAttempt(db, workerId);
      if (!job || held?.job_id !== jobId || held.attempt !== attempt) return undefined;
      const outcome = await endAttempt(db, job, held, {
        outcome: "timeout",
        error: `attempt ${attempt} ran past its ${job.timeout_s} s`,
        leaseS: this.ctx.config.outbox.firstLeaseS,
      });
      await releaseWorker(db, workerId, { succeeded: false });
      if (outcome === "timeout") await strikeWorker(db, workerId, jobId);
      else await benchWorker(db, workerId, "unresponsive", this.ignored(jobId));
      return outcome;
    });
    if (!outcome) return;
    const reason = outcome === "timeout" ? "past_deadline" : "past_cancel";
    this.ctx.metrics.workersLost.inc({ reason });
    this.ctx.logger.warn({ job_id: jobId, attempt, worker_id: workerId, outcome }, "attempt ended");
    this.ctx.signals.emit("outbox", { jobId, attempt, outcome });
  }

  private ignored(jobId: string): string {
    return `it did not stop ${jobId} within ${this.ctx.config.jobs.cancelGraceS} s of its cancel`;
  }
}
