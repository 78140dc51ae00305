import { randomUUID } from "node:crypto";
import { uptime } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import {
  type ClockReading,
  isStepBetween,
  nextBaseline,
  steadyMs,
  stepBackSince,
  stepBetween,
  unrecordedStep,
} from "../../core/clock-steps";
import { Unavailable } from "../../core/errors";
import { Coalesced } from "../../platform/concurrency/coalesce";
import type { Logger } from "../../platform/logger";
import {
  deleteClockChecksOutside,
  didOtherProcessWatch,
  findLastClockCheck,
  lockSteps,
  READ_TRANSACTION_MS,
  readClockAndSteps,
  saveClockCheck,
} from "../../platform/postgres/clock";
import type { Queryable } from "../../platform/postgres/pool";
import { type TransactionOptions, transaction } from "../../platform/postgres/transaction";
import { PRECISE_MS, recordStep } from "./record-step";
import { waitForOpenTransactions } from "./wait-for-open-transactions";

/**
 * Before a process records a clock step (see ClockWatch), it waits up to this long for open
 * transactions to end. This is more than the default timeout of a statement. If a transaction takes
 * longer, for example in a frozen process, recording the step does not move the times that the
 * transaction writes.
 */
const MAX_TRANSACTION_MS = 5_000;
/** Idle timeout of the recording transaction between two statements. */
const FROZEN_MS = 2_000;
/**
 * Timeout of each statement of the recording transaction. A statement may move the stored times of
 * hundreds of thousands of queued jobs, and may have to wait for a lock that a frozen process
 * holds.
 */
const RECORDING_MS = 300_000;
/** A transaction waits up to this long for the recording of a step before it tries again. */
const RECORDING_WAIT_MS = 10_000;
/** If a process has not checked the clock for this long, it is assumed to have ended. */
const ENDED_MS = 86_400_000;
/** Maximum number of tries of `transaction`, including the first one. */
const MAX_TRIES = 3;

/**
 * Thrown if the database's clock may have been set after this process's last check: the
 * transaction's time may be wrong.
 */
class ClockSet extends Unavailable {
  constructor() {
    super("the database's clock was set just now; try again shortly");
  }
}

interface ClockTransactionOptions extends Pick<TransactionOptions, "begin"> {
  /**
   * If true, the last try of `transaction` throws `Unavailable` when it can't tell whether the
   * clock was set. By default, the last try runs anyway.
   */
  requireKnownClock?: boolean;
}

/**
 * Detects when the database's clock is set forward or back (a step): compares that clock with this
 * machine's monotonic time. The first process that sees a step records it.
 *
 * Limits:
 * - If the clock is set while all processes are down, the next process detects this only if the
 *   clock now shows an earlier time than at the last check of any process. Any other step looks
 *   like a longer or shorter downtime.
 * - If a machine is suspended and its monotonic time stops, its processes see a step forward
 *   afterwards. They do not record this step if a process on another machine kept running and saw
 *   none.
 * - If the clock is set twice in opposite directions within a second or two, before all processes
 *   have checked it, the second step may be recorded twice.
 */
export class ClockWatch {
  private readonly processId = randomUUID();
  /** The baseline to compare the next reading with. All steps before the baseline are recorded. */
  private baseline: ClockReading | undefined;
  private lastRunningMs = 0;
  /**
   * When this process last saw a step, no matter which process recorded it. If it has seen none,
   * the time of its first check. Measured in `steadyMs`: the database's time without the recorded
   * steps.
   */
  private sinceMs = 0;
  private changes = 0;
  /**
   * Runs one check at a time. Concurrent callers share a check, which starts after all their calls.
   */
  private readonly checks = new Coalesced<undefined, undefined>(
    async (callers) => {
      await this.checkOnce();
      return callers;
    },
    { maxSize: Number.POSITIVE_INFINITY },
  );

  constructor(
    private readonly pool: pg.Pool,
    private readonly logger: Logger,
    private readonly runningMs: () => number = () => uptime() * 1000,
    private readonly recordingWaitMs = RECORDING_WAIT_MS,
  ) {}

  /**
   * Increases with each check that finds that the clock was set, or that can't tell whether it was
   * set. If the revision is the same after two checks, all comparisons with the clock between these
   * checks are valid.
   */
  get revision(): number {
    return this.changes;
  }

  /**
   * When this process last saw a clock step (see `sinceMs`). A clock step means that the clock and
   * this process's monotonic time have diverged: the clock was set, or this process was suspended.
   */
  get steadySinceMs(): number {
    return this.sinceMs;
  }

  /**
   * Checks the clock, and returns whether the current revision equals `revision`. If so, all
   * comparisons with the clock that the caller made after reading `revision` are valid.
   */
  async isUnchangedSince(revision: number): Promise<boolean> {
    await this.check();
    return this.changes === revision;
  }

  /** Checks the clock, and records a step. Call regularly, and never inside a transaction. */
  async check(): Promise<void> {
    await this.checks.add(undefined);
  }

  /**
   * Runs a transaction whose time decides a bill or an age. If the clock was set and the step is
   * not recorded yet, checks the clock and starts the transaction again. The last try runs even if
   * it is still unknown whether the clock was set, because most bills must not wait. Work that can
   * wait, such as deletions by age and the storage lines of closed months, passes
   * `requireKnownClock`: then the last try throws, and the caller's loop retries later.
   */
  async transaction<T>(
    work: (db: Queryable) => Promise<T>,
    { begin, requireKnownClock = false }: ClockTransactionOptions = {},
  ): Promise<T> {
    for (let tried = 1; ; tried++) {
      const isLast = tried === MAX_TRIES;
      try {
        return await transaction(
          this.pool,
          async (db, [, time]) => {
            if (isLast && !requireKnownClock) return await work(db);
            const { runningMs, recordedMs } = this.requireKnownClock(time?.rows[0]?.ms);
            const result = await work(db);
            // A process that records a step waits at most MAX_TRANSACTION_MS for this transaction
            // to end. Then it moves times that this transaction may have read. So if this
            // transaction took longer, check that no step was recorded.
            if (this.runningMs() - runningMs > MAX_TRANSACTION_MS) {
              if ((await readClockAndSteps(db)).recordedMs !== recordedMs) throw new ClockSet();
            }
            return result;
          },
          { begin: begin ? `${READ_TRANSACTION_MS}; ${begin}` : READ_TRANSACTION_MS },
        );
      } catch (error) {
        if (!(error instanceof ClockSet) || isLast) throw error;
        // The wait is bounded, so that bills are written even if recording a step fails or takes
        // long.
        const timeout = sleep(this.recordingWaitMs, undefined, { ref: false });
        await Promise.race([this.check().catch(() => undefined), timeout]);
      }
    }
  }

  /**
   * @returns the current reading, with the steps recorded so far.
   * @throws ClockSet if the clock was set after the last check.
   */
  private requireKnownClock(databaseMs: number): ClockReading {
    const { baseline } = this;
    const now = { runningMs: this.runningMs(), databaseMs, recordedMs: 0 };
    if (!baseline || stepBetween(baseline, now) !== 0) throw new ClockSet();
    return { ...now, recordedMs: baseline.recordedMs };
  }

  private async checkOnce(): Promise<void> {
    const before = this.baseline;
    let now = before ? await this.read(this.pool) : await this.recordStepBackWhileDown();
    if (before && now && unrecordedStep(before, now) !== 0) now = await this.recordSince(before);
    if (!now) {
      this.changes += 1;
      return;
    }
    const nowMs = steadyMs(now);
    if (!before || isStepBetween(before, now)) {
      this.changes += 1;
      this.sinceMs = nowMs;
    }
    this.baseline = before ? nextBaseline(before, now) : now;
    this.lastRunningMs = now.runningMs;
    await saveClockCheck(this.pool, this.processId, this.sinceMs, nowMs);
  }

  /**
   * Runs at this process's first check. Records a step if the clock was set back while no process
   * ran. Processes that start at the same time wait for the lock and then see the recorded step.
   */
  private async recordStepBackWhileDown(): Promise<ClockReading | undefined> {
    const nowMs = this.runningMs();
    return await this.record(nowMs, nowMs, async (db, now) => {
      const lastMs = await findLastClockCheck(db);
      return lastMs === undefined ? 0 : stepBackSince(lastMs, now);
    });
  }

  private async recordSince(before: ClockReading): Promise<ClockReading | undefined> {
    const noticedMs = this.runningMs();
    // Transactions that started before the step write the time that the clock showed before it was
    // set. Wait until they end, because recordStep moves only times in committed rows.
    await waitForOpenTransactions(this.pool, MAX_TRANSACTION_MS);
    return await this.record(this.lastRunningMs, noticedMs, async (db, now) => {
      const byMs = unrecordedStep(before, now);
      return byMs !== 0 && (await this.wasSuspended(db, before, now, byMs)) ? 0 : byMs;
    });
  }

  /**
   * Reads the clock again, and records the step. Takes a lock, so that no other process records at
   * the same time.
   *
   * @param lastCheckMs when this process last knew that all steps were recorded (runningMs).
   * @param noticedMs when the step was noticed (runningMs).
   * @param findStep returns the step to record in ms, or 0 for none.
   */
  private async record(
    lastCheckMs: number,
    noticedMs: number,
    findStep: (db: Queryable, now: ClockReading) => Promise<number>,
  ): Promise<ClockReading | undefined> {
    const work = async (db: Queryable) => {
      await lockSteps(db);
      const now = await this.read(db);
      if (!now) return { seen: undefined, byMs: 0, attempts: 0 };
      const byMs = await findStep(db, now);
      const gapS = (now.runningMs - lastCheckMs + PRECISE_MS) / 1000;
      const noticedS = (now.runningMs - noticedMs) / 1000;
      const attempts = byMs === 0 ? 0 : await recordStep(db, byMs / 1000, gapS, noticedS);
      const seen = { ...now, recordedMs: now.recordedMs + byMs };
      await deleteClockChecksOutside(db, steadyMs(seen) - ENDED_MS, steadyMs(seen) + PRECISE_MS);
      return { seen, byMs, attempts };
    };
    // Other processes wait for the lock, so Postgres must end this session if its process freezes
    // while it holds the lock.
    const begin = `set local idle_in_transaction_session_timeout = ${FROZEN_MS}`;
    const options = { begin, timeoutMs: RECORDING_MS };
    const { seen, byMs, attempts } = await transaction(this.pool, work, options);
    if (byMs !== 0) {
      this.logger.warn({ by_s: byMs / 1000, attempts }, "the database's clock was set");
    }
    return seen;
  }

  /**
   * Whether the step forward that this process sees is only its own suspension. True if another
   * process saw no step, and read a time that lies within the supposed step: a clock that was set
   * forward would never have shown that time.
   */
  private async wasSuspended(
    db: Queryable,
    before: ClockReading,
    now: ClockReading,
    byMs: number,
  ): Promise<boolean> {
    if (byMs < 0) return false;
    const [fromMs, toMs] = [steadyMs(before) + PRECISE_MS, steadyMs(now) - byMs / 2];
    return await didOtherProcessWatch(db, this.processId, fromMs, toMs);
  }

  private async read(db: Queryable): Promise<ClockReading | undefined> {
    const began = this.runningMs();
    const found = await readClockAndSteps(db);
    const ended = this.runningMs();
    // `runningMs` is the middle of the read, so it is wrong by half the read's duration at most.
    // Two readings together must not be wrong by more than PRECISE_MS.
    if (ended - began > PRECISE_MS) return undefined;
    return { ...found, runningMs: (began + ended) / 2 };
  }
}
