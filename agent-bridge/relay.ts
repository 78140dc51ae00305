import { setTimeout as sleep } from "node:timers/promises";
import { ActivityNotFoundError, WorkflowExecutionAlreadyStartedError } from "@temporalio/client";
import { isFinal } from "../core/states";
import { attemptActivityId, jobWorkflowId } from "../core/workflow-ids";
import type { Context } from "../infra/context";
import { attemptEndOf, findAttempt } from "../infra/database/attempts";
import {
  claimDebts,
  type Debt,
  findDebt,
  postponeDebt,
  settleDebt,
} from "../infra/database/outbox";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";
import type { OutboxRow } from "../infra/signals";
import { isRefused, TEMPORAL_DEADLINE_MS } from "../infra/temporal";
import { findWorkflowStatus, reconcileWorkflow, startJobWorkflow } from "./job-workflows";

const SWEEP_MS = 500;
/** Nothing owed for so long: each fourth sweep is enough. What this process owes, it hears of at once. */
const QUIET_AFTER_MS = 10_000;
const QUIET_STRIDE = 4;
/** A new job's hand-out goes first: the worker waits for it, while nobody waits for the workflow. */
const START_DELAY_MS = 25;
/** Most calls at once, and most rows claimed at once: a row must not outwait its lease. */
const CONCURRENCY = 20;
const MAX_BACKOFF_S = 10;
const DOWN_PAUSE_MS = 1_000;

/**
 * Tells Temporal what Postgres decided: that a job exists, and how an attempt ended. Each is a row of
 * the outbox until Temporal has taken it, so a submission or a result outlives Temporal's absence.
 */
export class Relay implements Part {
  readonly name = "relay";
  private readonly loop: Loop;
  private readonly inFlight = new Set<Promise<void>>();
  private downUntilMs = 0;
  private owedAtMs = 0;
  private sweeps = 0;

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("relay", SWEEP_MS, () => this.sweep(), ctx.logger);
  }

  start(): void {
    this.ctx.signals.on("outbox", this.onOutbox);
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.ctx.signals.off("outbox", this.onOutbox);
    await this.loop.stop();
    await Promise.allSettled(this.inFlight);
  }

  /** Right after the commit, in the process that holds the row's first lease. */
  private readonly onOutbox = (row: OutboxRow): void => {
    this.owedAtMs = this.ctx.clock.nowMs();
    // Under load, or while Temporal is away, the sweep does it.
    if (this.inFlight.size >= CONCURRENCY || this.isDown()) return;
    this.track(this.payNow(row));
  };

  private async payNow(row: OutboxRow): Promise<void> {
    if (row.attempt === 0) await sleep(START_DELAY_MS);
    const debt = await findDebt(this.ctx.pool, row.jobId, row.attempt);
    if (debt) await this.pay(debt);
  }

  private async sweep(): Promise<void> {
    if (this.sweeps++ % QUIET_STRIDE !== 0 && this.isQuiet()) return;
    while (!this.isDown()) {
      const debts = await claimDebts(
        this.ctx.pool,
        this.ctx.config.outbox.leaseS,
        this.downUntilMs > 0 ? 1 : CONCURRENCY,
      );
      if (debts.length === 0) return;
      this.owedAtMs = this.ctx.clock.nowMs();
      await Promise.all(debts.map((debt) => this.pay(debt)));
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
      .catch((error: unknown) => this.ctx.logger.debug({ err: String(error) }, "relay call failed"))
      .finally(() => this.inFlight.delete(done));
    this.inFlight.add(done);
  }

  private async pay(debt: Debt): Promise<void> {
    try {
      if (debt.superseded || (isFinal(debt.status) && debt.attempt === 0)) {
        await settleDebt(this.ctx.pool, debt.job_id, debt.attempt);
        return;
      }
      const taken = await this.ctx.temporal.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
        debt.attempt === 0 ? this.startWorkflow(debt) : this.deliverOutcome(debt),
      );
      this.downUntilMs = 0;
      if (taken) await settleDebt(this.ctx.pool, debt.job_id, debt.attempt);
      else await this.postpone(debt, "the workflow does not wait for it yet");
    } catch (error) {
      await this.onFailure(debt, error);
    }
  }

  private async startWorkflow(debt: Debt): Promise<boolean> {
    try {
      await startJobWorkflow(this.ctx, debt, "first");
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    return true;
  }

  /** @returns false when the workflow is there but does not wait for this outcome (yet). */
  private async deliverOutcome(debt: Debt): Promise<boolean> {
    const row = await findAttempt(this.ctx.pool, debt.job_id, debt.attempt);
    const report = row && attemptEndOf(row);
    if (!report) return true;
    const workflowId = jobWorkflowId(debt.job_id);
    try {
      await this.ctx.temporal.activity.complete(
        { workflowId, activityId: attemptActivityId(debt.attempt) },
        report,
      );
      return true;
    } catch (error) {
      if (!(error instanceof ActivityNotFoundError)) throw error;
    }
    // Not scheduled yet, done already, or no such workflow: only a look can tell.
    if (isFinal(debt.status)) return await this.isOver(debt);
    await reconcileWorkflow(this.ctx, debt, debt.attempt);
    return false;
  }

  /** Of a job that has ended: its workflow is owed the outcome until it has ended in the same way. */
  private async isOver(debt: Debt): Promise<boolean> {
    const status = await findWorkflowStatus(this.ctx, debt.job_id);
    if (status === debt.status.toUpperCase()) return true;
    // A new run reads the job, and ends as it did.
    if (status !== "RUNNING") await startJobWorkflow(this.ctx, debt, "again");
    return false;
  }

  private async onFailure(debt: Debt, error: unknown): Promise<void> {
    if (isRefused(error)) {
      this.ctx.logger.error(
        { job_id: debt.job_id, attempt: debt.attempt, err: String(error) },
        "Temporal refuses this job",
      );
    } else {
      if (this.downUntilMs === 0) this.ctx.logger.warn({ err: String(error) }, "Temporal is away");
      this.downUntilMs = this.ctx.clock.nowMs() + DOWN_PAUSE_MS;
    }
    await this.postpone(debt, String(error));
  }

  private async postpone(debt: Debt, why: string): Promise<void> {
    const backoffS = Math.min(MAX_BACKOFF_S, 0.2 * 2 ** Math.min(debt.tries, 10));
    await postponeDebt(this.ctx.pool, debt.job_id, debt.attempt, backoffS, why.slice(0, 500));
  }
}
