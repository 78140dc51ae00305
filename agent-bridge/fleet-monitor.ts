import type { Context } from "../infra/context";
import {
  listOverdueAttempts,
  lockHeldAttempt,
  type OverdueAttempt,
  unassign,
} from "../infra/database/attempts";
import {
  listSignsOfLife,
  markDead,
  markDeaf,
  type SignsOfLife,
} from "../infra/database/heartbeats";
import { lockJob } from "../infra/database/jobs";
import { losePlacements } from "../infra/database/placements";
import { transaction } from "../infra/database/transaction";
import { benchWorker, releaseWorker, strikeWorker } from "../infra/database/workers";
import { concludeAttempt } from "../infra/fleet/conclude-attempt";
import { lockWorkerHolding, loseHeldAttempt } from "../infra/fleet/lose-attempt";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";
import { type Counted, StillnessWatch } from "./stillness-watch";

/** The worker was heard after all: nothing of its burial may stay. */
class HeardAgain extends Error {
  override readonly name = "HeardAgain";
}

/** Ends what workers leave behind: silence, deafness, assignments not fetched, attempts past their time. */
export class FleetMonitor implements Part {
  readonly name = "fleet-monitor";
  private readonly heartbeats: StillnessWatch;
  private readonly polls: StillnessWatch;
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    const { heartbeatTimeoutS, deafAfterS } = ctx.config.fleet;
    const sweepMs = Math.min(2_000, (heartbeatTimeoutS * 1000) / 15, (deafAfterS * 1000) / 15);
    this.heartbeats = new StillnessWatch(heartbeatTimeoutS * 1000, sweepMs * 3);
    this.polls = new StillnessWatch(deafAfterS * 1000, sweepMs * 3);
    this.loop = new Loop("fleet-monitor", sweepMs, () => this.sweep(), ctx.logger);
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
    const beats = signs.map(({ worker_id: id, heartbeat_seq: seq }) => ({ id, seq }));
    const asked = signs.flatMap(({ worker_id: id, poll_seq: seq }) =>
      seq === null ? [] : { id, seq },
    );
    for (const silent of this.heartbeats.observe(beats, nowMs)) {
      await this.attempt(silent.id, () => this.declareDead(silent));
    }
    for (const deaf of this.polls.observe(asked, nowMs)) {
      await this.attempt(deaf.id, () => this.declareDeaf(deaf));
    }

    const { assignmentTimeoutS } = this.ctx.config.fleet;
    for (const attempt of await listOverdueAttempts(this.ctx.pool, assignmentTimeoutS)) {
      await this.attempt(attempt.worker_id, () =>
        attempt.state === "assigned" ? this.takeBack(attempt) : this.endOverdue(attempt),
      );
    }
  }

  /** One that can't be dealt with must not keep the others from being. */
  private async attempt(workerId: string, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) =>
      this.ctx.logger.error({ worker_id: workerId, err: String(error) }, "fleet monitor"),
    );
  }

  private async look(): Promise<SignsOfLife[]> {
    try {
      return await listSignsOfLife(this.ctx.pool);
    } catch (error) {
      // While we could not look, nobody could be heard either.
      this.heartbeats.startOver();
      this.polls.startOver();
      throw error;
    }
  }

  /** Marking dead and ending its attempt are one transaction; a heartbeat in between undoes both. */
  private async declareDead({ id: workerId, seq }: Counted): Promise<void> {
    const reason = `no heartbeat for ${this.ctx.config.fleet.heartbeatTimeoutS} s`;
    try {
      const { firstLeaseS: leaseS } = this.ctx.config.outbox;
      const { lost, deployments } = await transaction(this.ctx.pool, async (db) => {
        const losing = { workerId, reason, leaseS };
        const { lost } = await loseHeldAttempt(db, losing, async () => true);
        await lockWorkerHolding(db, workerId, undefined);
        if (!(await markDead(db, workerId, seq, reason))) throw new HeardAgain();
        if (lost) await strikeWorker(db, workerId);
        return { lost, deployments: await losePlacements(db, workerId) };
      });
      const line = { worker_id: workerId, lost_job: lost?.job_id };
      this.ctx.logger.warn(line, "worker is dead: silent");
      if (lost) this.ctx.signals.emit("outbox", { jobId: lost.job_id, attempt: lost.attempt });
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
    this.ctx.signals.queueChanged();
  }

  private async takeBack({ job_id: jobId, worker_id: workerId }: OverdueAttempt): Promise<void> {
    if (await unassign(this.ctx.pool, jobId, workerId)) this.ctx.signals.queueChanged();
  }

  /** Past its deadline, or past its cancel's grace: the worker has not stopped, so it is taken from it. */
  private async endOverdue(overdue: OverdueAttempt): Promise<void> {
    const { job_id: jobId, attempt, worker_id: workerId } = overdue;
    const outcome = await transaction(this.ctx.pool, async (db) => {
      const job = await lockJob(db, jobId);
      const held = await lockHeldAttempt(db, workerId);
      if (!job || held?.job_id !== jobId || held.attempt !== attempt) return undefined;
      const outcome = await concludeAttempt(db, job, held, {
        outcome: "timeout",
        error: `attempt ${attempt} ran past its ${job.timeout_s} s`,
        leaseS: this.ctx.config.outbox.firstLeaseS,
      });
      await releaseWorker(db, workerId);
      if (outcome === "timeout") await strikeWorker(db, workerId);
      else await benchWorker(db, workerId, "unresponsive", this.ignored(jobId));
      return outcome;
    });
    if (!outcome) return;
    this.ctx.logger.warn({ job_id: jobId, attempt, worker_id: workerId, outcome }, "attempt ended");
    this.ctx.signals.emit("outbox", { jobId, attempt });
  }

  private ignored(jobId: string): string {
    return `it did not stop ${jobId} within ${this.ctx.config.jobs.cancelGraceS} s of its cancel`;
  }
}
