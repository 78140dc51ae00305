import type { Context } from "../context";
import type { Delivery, EntryLogFields, Topic } from "../outbox/topic";
import {
  claimLines,
  markExported,
  postponeLine,
  releaseLines,
  reopenLines,
  suspendLines,
} from "./billing-exports";
import type {
  DueLine,
  Delivery as LineDelivery,
  NotDelivered,
  UsageExporter,
} from "./usage-exporter";

const BATCH = 100;
/**
 * A line is sent at most this long after its claim, so that every request ends well before the
 * lease expires.
 */
const SENDING_MS = 25_000;
const LEASE_S = 60;
/**
 * After this many deliveries in a row without an answer, the receiver counts as down, and the
 * claimed lines that are not sent yet are released.
 */
const DOWN_AFTER = 3;
const DAY_S = 86_400;
/** Longest delay of a failed line, in export intervals. */
const MAX_BACKOFF = 10;
const UPDATE_BATCH = 1_000;

/**
 * Billing lines that must be delivered in order, such as those of one customer. None is sent after
 * `untilMs`.
 */
interface Lane {
  lines: DueLine[];
  untilMs: number;
}

/**
 * Delivers due billing lines to an exporter: several lanes in parallel, and the lines of each lane
 * in order. A line needs no separate outbox entry: its row is due until it is marked as exported.
 */
export class LineTopic implements Topic<Lane, never> {
  readonly name = "billing-export";
  readonly concurrency = 8;
  /**
   * The courier must not claim during a delivery: two claims may return lines of the same lane, and
   * deliveries of the same lane must not overlap.
   */
  readonly claimsWhenIdle = true;
  readonly sweepMs: number;
  readonly pauseMs: number;
  /** Why the receiver did not answer the last delivery; undefined if it answered. */
  private failure: string | undefined;
  private failuresInARow = 0;

  constructor(
    private readonly ctx: Context,
    private readonly exporter: UsageExporter,
  ) {
    this.sweepMs = ctx.config.billingExport.intervalS * 1000;
    // After a delivery without an answer, the courier ends its sweep and pauses. The pause must be
    // over when the next sweep begins.
    this.pauseMs = this.sweepMs / 2;
  }

  async claim(limit: number): Promise<Lane[]> {
    const { pool, clock, clockWatch } = this.ctx;
    const { needsCustomer } = this.exporter;
    await reopenLines(pool, UPDATE_BATCH);
    let updated = needsCustomer ? UPDATE_BATCH : 0;
    while (updated === UPDATE_BATCH) updated = await suspendLines(pool, DAY_S, UPDATE_BATCH);
    const options = { leaseS: LEASE_S, limit: limit === 1 ? 1 : BATCH, needsCustomer };
    const lines = await clockWatch.transaction((db) => claimLines(db, options), {
      requireKnownClock: true,
    });
    this.failuresInARow = 0;
    const lanes = new Map<string, Lane>();
    const untilMs = clock.nowMs() + SENDING_MS;
    for (const line of lines) {
      const name = this.exporter.laneOf(line);
      const lane = lanes.get(name) ?? { lines: [], untilMs };
      lane.lines.push(line);
      lanes.set(name, lane);
    }
    return [...lanes.values()];
  }

  /**
   * Sends the lines in order. If the courier stops, the receiver is down, or `untilMs` has passed,
   * releases the remaining lines without sending them.
   *
   * @throws with the reason if the last delivery got no answer from the receiver.
   */
  async deliver({ lines, untilMs }: Lane, stopping: AbortSignal): Promise<Delivery> {
    const refused: NotDelivered[] = [];
    const unsent: DueLine[] = [];
    for (const line of lines) {
      const isOver =
        stopping.aborted || this.failuresInARow >= DOWN_AFTER || this.ctx.clock.nowMs() > untilMs;
      if (isOver) unsent.push(line);
      else await this.deliverLine(line, refused);
    }
    this.report(refused);
    if (unsent.length > 0) await releaseLines(this.ctx.pool, unsent);
    if (this.failure !== undefined) throw new Error(this.failure);
    return "delivered";
  }

  async outageOf(error: unknown): Promise<string> {
    return error instanceof Error ? error.message : String(error);
  }

  logFieldsOf({ lines }: Lane): EntryLogFields {
    return { lines: lines.length };
  }

  private async deliverLine(line: DueLine, refused: NotDelivered[]): Promise<void> {
    const { pool, config } = this.ctx;
    const delivery = await this.exporter.deliver(line);
    this.recordReceiverState(delivery);
    if (delivery.accepted) {
      const { warning = null } = delivery;
      await markExported(pool, line.line_id, warning);
      if (warning !== null)
        this.ctx.logger.warn({ line_id: line.line_id, warning }, "line exported");
      return;
    }
    if (delivery.retry !== "soon") refused.push(delivery);
    await postponeLine(pool, line, {
      forS: delayOf(delivery, line.tries, config.billingExport.intervalS),
      reason: delivery.reason,
      isInDoubt: delivery.mayHaveArrived || line.in_doubt_s !== null,
    });
  }

  /** Tracks whether the receiver answers. Ignores `too_late`, because the line was not sent. */
  private recordReceiverState(delivery: LineDelivery): void {
    if (delivery.accepted || delivery.retry === "tomorrow") {
      this.failure = undefined;
      this.failuresInARow = 0;
    } else if (delivery.retry === "soon") {
      this.failure = delivery.reason;
      this.failuresInARow += 1;
    }
  }

  private report(refused: NotDelivered[]): void {
    const [first] = refused;
    if (!first) return;
    const { name: exporter } = this.exporter;
    const facts = { exporter, lines: refused.length, reason: first.reason };
    this.ctx.logger.warn(facts, "billing lines were refused");
  }
}

function delayOf({ retry }: NotDelivered, tries: number, intervalS: number): number {
  switch (retry) {
    case "soon":
      return intervalS * Math.min(MAX_BACKOFF, 2 ** Math.min(tries - 1, 10));
    case "tomorrow":
    case "too_late":
      return DAY_S;
  }
}
