import { randomUUID } from "node:crypto";
import { uptime } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import {
  accountedLook,
  type ClockLook,
  isStepBetween,
  steadyMs,
  stepBackSince,
  stepBetween,
  unrecordedStep,
} from "../../core/clock-steps";
import { Unavailable } from "../../core/errors";
import { Coalesced } from "../../platform/concurrency/coalesce";
import type { Logger } from "../../platform/logger";
import {
  deleteLooksOutside,
  findLastLook,
  hasOtherRunOn,
  lockSteps,
  READ_TRANSACTION_MS,
  readClockAndSteps,
  saveLook,
} from "../../platform/postgres/clock";
import type { Queryable } from "../../platform/postgres/pool";
import { type TransactionOptions, transaction } from "../../platform/postgres/transaction";
import { untilEarlierTransactionsEnd } from "./earlier-transactions";
import { PRECISE_MS, recordStep } from "./record-step";

/**
 * Longer than a statement may take by default. A transaction that goes on for longer, such as one of a process that is
 * frozen, is not waited for: its times stay on the clock as it was.
 */
const MAX_TRANSACTION_MS = 5_000;
/** Longest between two statements of who records a step. */
const FROZEN_MS = 2_000;
/** Longest for one of these: some hundred thousand jobs may be queued, and a lock may be held up by a frozen process. */
const RECORDING_MS = 300_000;
/** For so long a transaction waits for a step to be recorded before it tries again: mostly that takes less. */
const PATIENCE_MS = 10_000;
/** A process that has not looked for so long has ended. */
const ENDED_MS = 86_400_000;

/** How often a transaction is begun again whose clock was set right before it. */
const MAX_TRIES = 3;

/** A transaction began by a clock of which the last look did not know yet. */
class ClockSet extends Unavailable {
  constructor() {
    super("the database's clock was set just now; try again shortly");
  }
}

interface ClockTransactionOptions extends Pick<TransactionOptions, "begin"> {
  /** The last try throws `Unavailable` where it can't tell whether the clock was set. Default: it runs. */
  requireKnownClock?: boolean;
}

/**
 * Notices when the database's clock is set, by comparing it with this machine's monotonic time, and records each
 * step once, whichever process sees it first. Of a step while all processes are down only this is seen, by the next
 * one that starts: that the clock is behind the last look of any process. A machine that was suspended without its
 * monotonic time going on sees a step forward, too; that is none if another process ran on meanwhile.
 */
export class ClockWatch {
  private readonly processId = randomUUID();
  /** The look up to which each step is recorded. */
  private accounted: ClockLook | undefined;
  private lastRunningMs = 0;
  /** Since when this process has seen no step that was not recorded (steadyMs). */
  private sinceMs = 0;
  private doubtful = 0;
  /** One at a time. Each caller's begins after its call, and many share one. */
  private readonly looks = new Coalesced<undefined, undefined>(async (callers) => {
    await this.lookOnce();
    return callers;
  }, Infinity);

  constructor(
    private readonly pool: pg.Pool,
    private readonly logger: Logger,
    private readonly runningMs: () => number = () => uptime() * 1000,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  /**
   * Grows with each look that found that the clock was set, or could not tell. What was compared with the clock
   * between two looks holds where this did not change.
   */
  get doubts(): number {
    return this.doubtful;
  }

  /** Changes where this process's own time and the clock went apart: one of the two was set, or stood still. */
  get evenSinceMs(): number {
    return this.sinceMs;
  }

  /** Looks, and tells whether what was compared with the clock when there were so many doubts holds. */
  async holdsSince(doubts: number): Promise<boolean> {
    await this.look();
    return this.doubtful === doubts;
  }

  /** Call regularly. Not in a transaction. */
  async look(): Promise<void> {
    await this.looks.add(undefined);
  }

  /**
   * A transaction whose time decides about a bill, or whether something is old: it begins again, after a look, if the
   * clock was set and that is not recorded yet. If even the last try can't tell, it runs, because bills must be
   * written. A deletion by age passes `requireKnownClock` instead: then the last try throws, and the caller's loop
   * tries again later.
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
            // Who records a step does not wait for longer ones: its statements may have met what that moved.
            if (this.runningMs() - runningMs > MAX_TRANSACTION_MS) {
              if ((await readClockAndSteps(db)).recordedMs !== recordedMs) throw new ClockSet();
            }
            return result;
          },
          { begin: begin ? `${READ_TRANSACTION_MS}; ${begin}` : READ_TRANSACTION_MS },
        );
      } catch (error) {
        if (!(error instanceof ClockSet) || isLast) throw error;
        // While a step can't be recorded, or that takes long, bills are written all the same in the end.
        const late = sleep(this.patienceMs, undefined, { ref: false });
        await Promise.race([this.look().catch(() => undefined), late]);
      }
    }
  }

  /** @returns this moment, and the steps that were recorded until then. */
  private requireKnownClock(databaseMs: number): ClockLook {
    const { accounted } = this;
    const now = { runningMs: this.runningMs(), databaseMs, recordedMs: 0 };
    if (!accounted || stepBetween(accounted, now) !== 0) throw new ClockSet();
    return { ...now, recordedMs: accounted.recordedMs };
  }

  private async lookOnce(): Promise<void> {
    const before = this.accounted;
    let now = before ? await this.read(this.pool) : await this.recordStepBackWhileDown();
    if (before && now && unrecordedStep(before, now) !== 0) now = await this.recordSince(before);
    if (!now) {
      this.doubtful += 1;
      return;
    }
    const nowMs = steadyMs(now);
    if (!before || isStepBetween(before, now)) {
      this.doubtful += 1;
      this.sinceMs = nowMs;
    }
    this.accounted = before ? accountedLook(before, now) : now;
    this.lastRunningMs = now.runningMs;
    await saveLook(this.pool, this.processId, this.sinceMs, nowMs);
  }

  /** At the first look. Others that begin at the same time wait, and see what is recorded. */
  private async recordStepBackWhileDown(): Promise<ClockLook | undefined> {
    const nowMs = this.runningMs();
    return await this.record(nowMs, nowMs, async (db, now) => {
      const lastMs = await findLastLook(db);
      return lastMs === undefined ? 0 : stepBackSince(lastMs, now);
    });
  }

  private async recordSince(before: ClockLook): Promise<ClockLook | undefined> {
    const noticedMs = this.runningMs();
    // Those that began before the step write times from before it, and recordStep moves only what it sees.
    await untilEarlierTransactionsEnd(this.pool, MAX_TRANSACTION_MS);
    return await this.record(this.lastRunningMs, noticedMs, async (db, now) => {
      const byMs = unrecordedStep(before, now);
      return byMs !== 0 && (await this.hasStoodStill(db, before, now, byMs)) ? 0 : byMs;
    });
  }

  /**
   * Looks again while no other process records.
   *
   * @param soFarMs until when, by runningMs, there was no step that is not recorded.
   * @param noticedMs when a step was noticed, by runningMs.
   * @param findStep the step that is to be recorded, in ms; 0: none.
   */
  private async record(
    soFarMs: number,
    noticedMs: number,
    findStep: (db: Queryable, now: ClockLook) => Promise<number>,
  ): Promise<ClockLook | undefined> {
    const work = async (db: Queryable) => {
      await lockSteps(db);
      const now = await this.read(db);
      if (!now) return { seen: undefined, byMs: 0, attempts: 0 };
      const byMs = await findStep(db, now);
      const gapS = (now.runningMs - soFarMs + PRECISE_MS) / 1000;
      const noticedS = (now.runningMs - noticedMs) / 1000;
      const attempts = byMs === 0 ? 0 : await recordStep(db, byMs / 1000, gapS, noticedS);
      const seen = { ...now, recordedMs: now.recordedMs + byMs };
      await deleteLooksOutside(db, steadyMs(seen) - ENDED_MS, steadyMs(seen) + PRECISE_MS);
      return { seen, byMs, attempts };
    };
    // All others wait for the lock: one who froze while holding it is ended.
    const begin = `set local idle_in_transaction_session_timeout = ${FROZEN_MS}`;
    const options = { begin, timeoutMs: RECORDING_MS };
    const { seen, byMs, attempts } = await transaction(this.pool, work, options);
    if (byMs !== 0) {
      this.logger.warn({ by_s: byMs / 1000, attempts }, "the database's clock was set");
    }
    return seen;
  }

  /**
   * Whether the clock was not set forward, but this process's own time stood still: another process ran on and saw no
   * step, and looked at a time that the step would have left out.
   */
  private async hasStoodStill(
    db: Queryable,
    before: ClockLook,
    now: ClockLook,
    byMs: number,
  ): Promise<boolean> {
    if (byMs < 0) return false;
    const [fromMs, toMs] = [steadyMs(before) + PRECISE_MS, steadyMs(now) - byMs / 2];
    return await hasOtherRunOn(db, this.processId, fromMs, toMs);
  }

  private async read(db: Queryable): Promise<ClockLook | undefined> {
    const began = this.runningMs();
    const found = await readClockAndSteps(db);
    const ended = this.runningMs();
    // Two looks together are off by this at most.
    if (ended - began > PRECISE_MS) return undefined;
    return { ...found, runningMs: (began + ended) / 2 };
  }
}
