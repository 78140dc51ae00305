import { setTimeout as sleep } from "node:timers/promises";
import { Slots } from "../../platform/concurrency/slots";
import { Loop } from "../../platform/loop";
import { isDatabaseError } from "../../platform/postgres/errors";
import type { Component } from "../../platform/service";
import { grpcCode, isRefusal, reasonOf } from "../../platform/temporal/client";
import type { Context } from "../context";
import { Removals } from "./removals";
import type { Delivery, Topic } from "./topic";

/**
 * After `QUIET_AFTER_MS` without an entry, only one sweep in `QUIET_STRIDE` runs. An entry that
 * this process commits for immediate delivery is not delayed, because `onCommit` delivers it
 * without a sweep.
 */
const QUIET_AFTER_MS = 10_000;
const QUIET_STRIDE = 4;
/**
 * If this many entries wait for a free slot, `onCommit` adds no further entry. A sweep delivers it
 * later.
 */
const MAX_WAITING = 10_000;
/**
 * Longest delay between two deliveries of an entry. MAX_REFUSED_BACKOFF_S applies if the receiver
 * refuses the call.
 */
const MAX_BACKOFF_S = 10;
const MAX_REFUSED_BACKOFF_S = 300;
/**
 * A failed delivery is logged as an error only if the entry was already postponed at least this
 * many times. An entry's first failure may be due to an outage that has just ended. `outageOf` does
 * not detect such an outage, because the receiver is up again when `outageOf` runs.
 */
const LOG_ERROR_AFTER_TRIES = 1;
const MAX_REASON_LENGTH = 500;
/**
 * How long `stop` waits for deliveries in progress. If one hangs, another process delivers its
 * entry after the lease has expired.
 */
const STOP_GRACE_MS = 5_000;

/**
 * Delivers the outbox entries of one topic. Runs in every process. If this process commits an
 * entry, the courier delivers it right after the commit. A sweep finds all other entries that are
 * due, for example because a process that had leased them crashed. An entry stays in the database
 * until it is delivered, so an outage of the receiver or a crash loses no change.
 */
export class Courier<Entry, Key = never> implements Component {
  readonly name: string;
  private readonly loop: Loop;
  private readonly stopping = new AbortController();
  private readonly slots: Slots;
  private readonly removals: Removals<Entry> | undefined;
  private unsubscribe: (() => unknown) | undefined;
  /** Why the receiver is down; undefined if it seems up. */
  private outage: string | undefined;
  private pausedUntilMs = 0;
  private lastEntryMs = 0;
  private sweeps = 0;

  constructor(
    private readonly ctx: Context,
    private readonly topic: Topic<Entry, Key>,
  ) {
    this.name = topic.name;
    this.loop = new Loop(topic.name, topic.sweepMs, () => this.sweep(), ctx);
    // A failure is only logged: the entry is still in the database, and a later sweep delivers it.
    this.slots = new Slots(topic.concurrency, (error) => this.debug(error, "delivery failed"));
    const remove = topic.remove?.bind(topic);
    this.removals =
      remove && new Removals(remove, (error) => this.debug(error, "outbox entry not removed"));
  }

  start(): void {
    this.unsubscribe = this.topic.subscribe?.((key) => this.onCommit(key));
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.unsubscribe?.();
    this.stopping.abort();
    await Promise.race([this.drain(), sleep(STOP_GRACE_MS, undefined, { ref: false })]);
  }

  private async drain(): Promise<void> {
    await this.loop.stop();
    await this.slots.untilIdle();
    await this.removals?.untilDone();
  }

  /**
   * Called after this process has committed an entry. The same transaction has leased the entry, so
   * that no sweep delivers it at the same time. Exception: entries of deployments are leased later,
   * by `find` of their topic.
   */
  private onCommit(key: Key | undefined): void {
    this.lastEntryMs = this.ctx.clock.nowMs();
    if (key === undefined || this.isPaused() || this.slots.waitingCount >= MAX_WAITING) return;
    this.slots.run(() => this.deliverKey(key));
  }

  private async deliverKey(key: Key): Promise<void> {
    if (this.isPaused()) return;
    const entry = await this.topic.find?.(key);
    if (entry) await this.deliver(entry);
  }

  /**
   * @throws while the receiver is down, so that the loop logs the start and the end of the outage.
   */
  private async sweep(): Promise<void> {
    const { claimsWhenIdle, concurrency } = this.topic;
    if (this.sweeps++ % QUIET_STRIDE !== 0 && this.isQuiet()) return;
    while (!this.isPaused()) {
      const { free } = this.slots;
      if (free <= 0 || (claimsWhenIdle && free < concurrency)) {
        await this.slots.untilAnyEnds();
        continue;
      }
      const isProbe = this.outage !== undefined;
      const entries = await this.topic.claim(isProbe ? 1 : free);
      if (entries.length === 0) {
        if (isProbe && (await this.topic.isBack?.())) this.outage = undefined;
        break;
      }
      this.lastEntryMs = this.ctx.clock.nowMs();
      for (const entry of entries) this.slots.run(() => this.deliver(entry));
      if (isProbe) await this.slots.untilRunningEnd();
    }
    if (this.outage !== undefined) throw new Error(this.outage);
  }

  private isQuiet(): boolean {
    if (!this.topic.subscribe || this.outage !== undefined) return false;
    return this.ctx.clock.nowMs() - this.lastEntryMs > QUIET_AFTER_MS;
  }

  private isPaused(): boolean {
    return this.stopping.signal.aborted || this.ctx.clock.nowMs() < this.pausedUntilMs;
  }

  private async deliver(entry: Entry): Promise<void> {
    try {
      const delivery = await this.topic.deliver(entry, this.stopping.signal);
      if (delivery !== "obsolete") this.onAnswer(entry, delivery);
      if (delivery === "not_awaited") await this.postpone(entry, "not awaited yet");
      else if (delivery === "accepted") {
        await this.topic.postpone?.(entry, MAX_BACKOFF_S, "the receiver has not finished yet");
      } else this.removals?.add(entry);
    } catch (error) {
      await this.onFailure(entry, error);
    }
  }

  private onAnswer(entry: Entry, delivery: Delivery): void {
    this.outage = undefined;
    const { tries = 0 } = this.topic.logFieldsOf(entry);
    // An accepted entry is delivered again until the receiver has done its work. Don't count these
    // deliveries again. So if the first delivery failed, none of them is counted as taken.
    if (delivery === "accepted" && tries > 0) return;
    this.count(entry, delivery === "not_awaited" ? "not_waited_for" : "taken");
  }

  private async onFailure(entry: Entry, error: unknown): Promise<void> {
    // Postgres has failed, not the receiver. The entry's lease expires, and a sweep delivers it
    // when Postgres works again.
    if (isDatabaseError(error)) throw error;
    this.count(entry, "failed", grpcCode(error));
    const reason = reasonOf(error);
    this.outage = await this.topic.outageOf(error);
    if (this.outage === undefined) {
      this.logFailure(entry, reason);
      const longestS = isRefusal(error) ? MAX_REFUSED_BACKOFF_S : MAX_BACKOFF_S;
      await this.postpone(entry, reason, longestS);
    } else {
      this.pausedUntilMs = this.ctx.clock.nowMs() + this.topic.pauseMs;
      await this.postpone(entry, reason);
    }
  }

  private logFailure(entry: Entry, err: string): void {
    const facts = this.topic.logFieldsOf(entry);
    const { tries } = facts;
    const level = tries === undefined ? "warn" : tries < LOG_ERROR_AFTER_TRIES ? "debug" : "error";
    this.ctx.logger[level]({ loop: this.name, ...facts, err }, "outbox entry not delivered");
  }

  private async postpone(entry: Entry, why: string, longestS = MAX_BACKOFF_S): Promise<void> {
    const { tries = 0 } = this.topic.logFieldsOf(entry);
    const backoffS = Math.min(longestS, 0.2 * 2 ** Math.min(tries, 12));
    await this.topic.postpone?.(entry, backoffS, why.slice(0, MAX_REASON_LENGTH));
  }

  private count(
    entry: Entry,
    result: "taken" | "not_waited_for" | "failed",
    code: number | "" = "",
  ): void {
    const call = this.topic.callOf?.(entry);
    if (call !== undefined) this.ctx.metrics.temporalCalls.inc({ call, result, code: `${code}` });
  }

  private debug(error: unknown, message: string): void {
    this.ctx.logger.debug({ loop: this.name, err: reasonOf(error) }, message);
  }
}
