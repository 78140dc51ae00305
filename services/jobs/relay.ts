import { Batcher } from "../../platform/concurrency/batcher";
import { Loop } from "../../platform/loop";
import { isDatabaseError } from "../../platform/postgres/errors";
import type { Component } from "../../platform/service";
import type { OutboxRow } from "../../platform/signals";
import {
  isRefusal,
  isTemporalThere,
  reasonOf,
  TEMPORAL_DEADLINE_MS,
} from "../../platform/temporal/client";
import type { Context } from "../context";
import { attemptEndOf, findAttempt } from "./attempts";
import { reconcileWorkflow, startJobWorkflow, tellOutcome } from "./job-workflows";
import { claimDebts, type Debt, findDebt, type Paid, postponeDebt, settleDebts } from "./outbox";

const SWEEP_MS = 500;
/** Nothing owed for so long: each fourth sweep is enough. What this process owes, it hears of at once. */
const QUIET_AFTER_MS = 10_000;
const QUIET_STRIDE = 4;
/** Most calls at once, and most rows claimed at once: a row must not outwait its lease. */
const CONCURRENCY = 20;
/** Most rows of this process that wait for one of these calls; the sweep finds what is beyond. */
const MAX_WAITING = 10_000;
/** Longest wait between two tries of a row: while that may help, and where Temporal refuses it. */
const MAX_BACKOFF_S = 10;
const MAX_FAULT_BACKOFF_S = 300;
/** So many tries of a row fail while Temporal answers: then the row is what is wrong. */
const SURE_AFTER_TRIES = 1;
const DOWN_PAUSE_MS = 1_000;
/**
 * What is paid is settled together, after so long and so many at once: most short jobs have completed by then,
 * which settles what they owe. Far less than a lease, so that nobody pays again.
 */
const SETTLE_MS = 200;
const SETTLED_AT_ONCE = 500;

/**
 * Tells Temporal what Postgres decided: that a job exists, and how an attempt ended. Each is a row of
 * the outbox until Temporal has taken it, so a submission or a result outlives Temporal's absence.
 */
export class Relay implements Component {
  readonly name = "relay";
  private readonly loop: Loop;
  private readonly inFlight = new Set<Promise<void>>();
  private readonly settling = new Set<Promise<void>>();
  private readonly paid: Batcher<Paid, undefined>;
  private waiting: OutboxRow[] = [];
  private downUntilMs = 0;
  private owedAtMs = 0;
  private sweeps = 0;

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("relay", SWEEP_MS, () => this.sweep(), ctx);
    const settle = async (paid: Paid[]): Promise<undefined[]> => {
      await settleDebts(ctx.pool, paid);
      return paid.map(() => undefined);
    };
    this.paid = new Batcher(settle, SETTLE_MS, SETTLED_AT_ONCE);
  }

  start(): void {
    this.ctx.signals.on("outbox", this.onOutbox);
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.ctx.signals.off("outbox", this.onOutbox);
    this.waiting = [];
    await this.loop.stop();
    await Promise.allSettled(this.inFlight);
    await Promise.allSettled(this.settling);
  }

  /** Right after the commit, in the process that holds the row's first lease. */
  private readonly onOutbox = (row: OutboxRow): void => {
    this.owedAtMs = this.ctx.clock.nowMs();
    // A start is not due yet; and while Temporal is away, the sweep does it.
    if (row.attempt === 0 || this.isDown()) return;
    if (this.inFlight.size < CONCURRENCY) this.track(this.payNow(row));
    else if (this.waiting.length < MAX_WAITING) this.waiting.push(row);
  };

  private async payNow(row: OutboxRow): Promise<void> {
    const debt = await findDebt(this.ctx.pool, row.jobId, row.attempt);
    if (debt) await this.pay(debt);
  }

  private async sweep(): Promise<void> {
    if (this.sweeps++ % QUIET_STRIDE !== 0 && this.isQuiet()) return;
    while (!this.isDown()) {
      const room = CONCURRENCY - this.inFlight.size;
      if (room <= 0) {
        await Promise.race(this.inFlight);
        continue;
      }
      const isTry = this.downUntilMs > 0;
      const debts = await claimDebts(
        this.ctx.pool,
        this.ctx.config.outbox.leaseS,
        isTry ? 1 : room,
      );
      if (debts.length === 0) break;
      this.owedAtMs = this.ctx.clock.nowMs();
      for (const debt of debts) this.track(this.pay(debt));
      if (isTry) await Promise.allSettled(this.inFlight);
    }
  }

  private isQuiet(): boolean {
    return this.downUntilMs === 0 && this.ctx.clock.nowMs() - this.owedAtMs > QUIET_AFTER_MS;
  }

  private isDown(): boolean {
    return this.ctx.clock.nowMs() < this.downUntilMs;
  }

  private track(work: Promise<unknown>): void {
    const done: Promise<void> = work
      .then(() => undefined)
      // The row is still there: the sweep comes back to it.
      .catch((error: unknown) =>
        this.ctx.logger.debug({ err: reasonOf(error) }, "relay call failed"),
      )
      .finally(() => {
        this.inFlight.delete(done);
        const next = this.isDown() ? undefined : this.waiting.shift();
        if (next) this.track(this.payNow(next));
      });
    this.inFlight.add(done);
  }

  private async pay(debt: Debt): Promise<void> {
    try {
      if (debt.superseded) {
        this.settle(debt.job_id, [debt.attempt]);
        return;
      }
      const settled = await this.ctx.temporal.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
        this.tellTemporal(debt),
      );
      this.downUntilMs = 0;
      this.count(debt, settled.length > 0 ? "taken" : "not_waited_for");
      if (settled.length > 0) this.settle(debt.job_id, settled);
      else await this.postpone(debt, "the workflow does not wait for it yet");
    } catch (error) {
      await this.onFailure(debt, error);
    }
  }

  /** Where that fails the rows are still there: the sweep comes back to them. */
  private settle(jobId: string, attempts: number[]): void {
    for (const attempt of attempts) {
      const done: Promise<void> = this.paid
        .add({ job_id: jobId, attempt })
        .catch((error: unknown) => this.ctx.logger.debug({ err: reasonOf(error) }, "not settled"))
        .finally(() => this.settling.delete(done));
      this.settling.add(done);
    }
  }

  /** @returns the debts of the job that are paid by it; none where the workflow does not wait for it yet. */
  private async tellTemporal(debt: Debt): Promise<number[]> {
    const { attempt, unstarted } = debt;
    const started = unstarted && (await startJobWorkflow(this.ctx, debt, "first"));
    if (attempt === 0) return [0];
    // A workflow looks before it waits: what was committed before its start, it knows.
    if (started) return [0, attempt];
    return (await this.deliverOutcome(debt)) ? [attempt] : [];
  }

  /** @returns false when the workflow does not know the outcome yet. */
  private async deliverOutcome({ job_id: jobId, attempt }: Debt): Promise<boolean> {
    const row = await findAttempt(this.ctx.pool, jobId, attempt);
    const end = row && attemptEndOf(row);
    if (!end || (await tellOutcome(this.ctx, jobId, attempt, end))) return true;
    // Not scheduled yet, done already, or no such workflow: only a look can tell.
    return await reconcileWorkflow(this.ctx, jobId);
  }

  private count({ unstarted }: Debt, result: "taken" | "not_waited_for" | "failed"): void {
    this.ctx.metrics.temporalCalls.inc({ call: unstarted ? "start" : "outcome", result });
  }

  private async onFailure(debt: Debt, error: unknown): Promise<void> {
    // The row is claimed for a while, and paid when Postgres is well again.
    if (isDatabaseError(error)) throw error;
    this.count(debt, "failed");
    if (await isTemporalThere(this.ctx.temporal)) {
      this.downUntilMs = 0;
      const { job_id, attempt, tries } = debt;
      const line = { job_id, attempt, tries, err: reasonOf(error) };
      // It may have been away a moment ago.
      if (tries >= SURE_AFTER_TRIES) {
        this.ctx.logger.error(line, "Temporal does not take what is owed for this job");
      }
      const longestS = isRefusal(error) ? MAX_FAULT_BACKOFF_S : MAX_BACKOFF_S;
      return await this.postpone(debt, reasonOf(error), longestS);
    }
    if (this.downUntilMs === 0) this.ctx.logger.warn({ err: reasonOf(error) }, "Temporal is away");
    this.downUntilMs = this.ctx.clock.nowMs() + DOWN_PAUSE_MS;
    this.waiting = [];
    await this.postpone(debt, reasonOf(error));
  }

  private async postpone(debt: Debt, why: string, longestS = MAX_BACKOFF_S): Promise<void> {
    const backoffS = Math.min(longestS, 0.2 * 2 ** Math.min(debt.tries, 12));
    await postponeDebt(this.ctx.pool, debt.job_id, debt.attempt, backoffS, why.slice(0, 500));
  }
}
