import { randomUUID } from "node:crypto";
import { uptime } from "node:os";
import type pg from "pg";
import {
  accountedLook,
  type ClockLook,
  isStepBetween,
  steadyMs,
  unrecordedStep,
} from "../core/clock-steps";
import {
  deleteLooksOutside,
  hasOtherRunOn,
  lockSteps,
  readClockAndSteps,
  recordStep,
  saveLook,
} from "./database/clock";
import type { Queryable } from "./database/pool";
import { transaction } from "./database/transaction";
import type { Logger } from "./logger";

/** A look that takes longer doesn't tell when the clock was read. Two looks together are off by this at most. */
const PRECISE_MS = 2_000;
/** Longest between two statements of who records a step. */
const FROZEN_MS = 2_000;
/** A process that has not looked for so long has ended. */
const ENDED_MS = 86_400_000;

/**
 * Notices when the database's clock is set, by comparing it with this machine's monotonic time, and records each
 * step once, whichever process sees it first. A step while all processes are down is not seen: then the new time
 * is taken as it is. A machine that was suspended without its monotonic time going on sees a step forward, too; that
 * is none if another process ran on meanwhile.
 */
export class ClockWatch {
  private readonly processId = randomUUID();
  /** The look up to which each step is recorded. */
  private accounted: ClockLook | undefined;
  private lastRunningMs = 0;
  /** Since when this process has seen no step that was not recorded (steadyMs). */
  private sinceMs = 0;
  private doubtful = 0;

  constructor(
    private readonly pool: pg.Pool,
    private readonly logger: Logger,
    private readonly runningMs: () => number = () => uptime() * 1000,
  ) {}

  /**
   * Grows with each look that found that the clock was set, or could not tell. What was compared with the clock
   * between two looks holds where this did not change.
   */
  get doubts(): number {
    return this.doubtful;
  }

  /** Call regularly, and before the clock decides about a bill. Not in a transaction. */
  async look(): Promise<void> {
    const before = this.accounted;
    let now = await this.read(this.pool);
    if (before && now && unrecordedStep(before, now) !== 0) now = await this.record(before);
    if (!now) {
      this.doubtful += 1;
      return;
    }
    const nowMs = steadyMs(now);
    if (!before) await deleteLooksOutside(this.pool, nowMs - ENDED_MS, nowMs + PRECISE_MS);
    if (!before || isStepBetween(before, now)) {
      this.doubtful += 1;
      this.sinceMs = nowMs;
    }
    this.accounted = before ? accountedLook(before, now) : now;
    this.lastRunningMs = now.runningMs;
    await saveLook(this.pool, this.processId, this.sinceMs, nowMs);
  }

  /** Looks again while no other process records. */
  private async record(before: ClockLook): Promise<ClockLook | undefined> {
    const work = async (db: Queryable) => {
      await lockSteps(db);
      const now = await this.read(db);
      const byMs = now ? unrecordedStep(before, now) : 0;
      if (!now || byMs === 0 || (await this.hasStoodStill(db, before, now, byMs))) {
        return { now, byMs: 0, attempts: 0 };
      }
      const gapS = (now.runningMs - this.lastRunningMs + PRECISE_MS) / 1000;
      const attempts = await recordStep(db, byMs / 1000, gapS);
      return { now: { ...now, recordedMs: now.recordedMs + byMs }, byMs, attempts };
    };
    // All others wait for the lock: one who froze while holding it is ended.
    const begin = `set local idle_in_transaction_session_timeout = ${FROZEN_MS}`;
    const seen = await transaction(this.pool, work, { begin });
    const { now, byMs, attempts } = seen;
    if (byMs !== 0) {
      this.logger.warn({ by_s: byMs / 1000, attempts }, "the database's clock was set");
    }
    return now;
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
    if (ended - began > PRECISE_MS) return undefined;
    return { ...found, runningMs: (began + ended) / 2 };
  }
}
