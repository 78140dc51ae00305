import type { Context } from "../context";
import {
  claimLines,
  markExported,
  parkLines,
  postponeLine,
  releaseLines,
  reopenLines,
} from "./billing-exports";
import type { Delivery, DueLine, NotTaken, UsageExporter } from "./usage-exporter";

const BATCH = 100;
/** Lanes side by side. */
const AT_ONCE = 8;
/** Nothing is sent later than this after its claim; what was, has ended long before the lease. */
const SENDING_MS = 25_000;
const LEASE_S = 60;
/** So many failures without an answer between them: the other side is away. */
const AWAY_AFTER = 3;
const DAY_S = 86_400;
/** In intervals: what failed goes on with the rest, not hours later. */
const MAX_BACKOFF = 10;
const PARKED_AT_ONCE = 1_000;

/** Takes billing lines that are due to an exporter, and notes what becomes of each. */
export class LineDelivery {
  isStopping = false;
  /** Why the last delivery that ended got no answer. As long as it is there, one line at a time asks. */
  private failure: string | undefined;
  private failuresInARow = 0;

  constructor(
    private readonly ctx: Context,
    private readonly exporter: UsageExporter,
  ) {}

  /** Delivers all that is due. @throws what the other side's trouble is, for the loop to say it once. */
  async pass(): Promise<void> {
    const { pool, clockWatch } = this.ctx;
    const { needsCustomer } = this.exporter;
    await reopenLines(pool, PARKED_AT_ONCE);
    let parked = needsCustomer ? PARKED_AT_ONCE : 0;
    while (parked === PARKED_AT_ONCE) parked = await parkLines(pool, DAY_S, PARKED_AT_ONCE);
    const refused: NotTaken[] = [];
    try {
      while (!this.isStopping) {
        const limit = this.failure === undefined ? BATCH : 1;
        const lines = await clockWatch.transaction(
          (db) => claimLines(db, { leaseS: LEASE_S, limit, needsCustomer }),
          { requireKnownClock: true },
        );
        await this.deliver(lines, refused);
        if (lines.length < limit || this.failure !== undefined) break;
      }
    } finally {
      this.report(refused);
    }
    if (this.failure !== undefined) throw new Error(this.failure);
  }

  private async deliver(lines: DueLine[], refused: NotTaken[]): Promise<void> {
    const lanes = this.lanesOf(lines).values();
    const unsent: DueLine[] = [];
    const { clock } = this.ctx;
    const until = clock.nowMs() + SENDING_MS;
    const isOver = (): boolean =>
      this.isStopping || this.failuresInARow >= AWAY_AFTER || clock.nowMs() > until;
    this.failuresInARow = 0;
    const work = async (): Promise<void> => {
      // One iterator for all of them: each lane is taken once.
      for (const lane of lanes) {
        for (const line of lane) {
          if (isOver()) unsent.push(line);
          else await this.deliverOne(line, refused);
        }
      }
    };
    const done = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
    if (unsent.length > 0) await releaseLines(this.ctx.pool, unsent);
    for (const one of done) if (one.status === "rejected") throw one.reason;
  }

  private lanesOf(lines: DueLine[]): Map<string, DueLine[]> {
    const lanes = new Map<string, DueLine[]>();
    for (const line of lines) {
      const name = this.exporter.laneOf(line);
      const lane = lanes.get(name);
      if (lane) lane.push(line);
      else lanes.set(name, [line]);
    }
    return lanes;
  }

  private async deliverOne(line: DueLine, refused: NotTaken[]): Promise<void> {
    const { pool, config } = this.ctx;
    const delivery = await this.exporter.deliver(line);
    this.notice(delivery);
    if (delivery.taken) {
      await markExported(pool, line.line_id);
      return;
    }
    if (delivery.again !== "soon") refused.push(delivery);
    await postponeLine(pool, line, {
      forS: waitOf(delivery, line.tries, config.billingExport.intervalS),
      reason: delivery.reason,
      isInDoubt: delivery.mayHaveArrived || line.in_doubt_s !== null,
    });
  }

  /** What is not sent for its age says nothing about the other side: it was not asked. */
  private notice(delivery: Delivery): void {
    if (delivery.taken || delivery.again === "tomorrow") {
      this.failure = undefined;
      this.failuresInARow = 0;
    } else if (delivery.again === "soon") {
      this.failure = delivery.reason;
      this.failuresInARow += 1;
    }
  }

  private report(refused: NotTaken[]): void {
    const [first] = refused;
    if (!first) return;
    const { name: exporter } = this.exporter;
    const facts = { exporter, lines: refused.length, reason: first.reason };
    this.ctx.logger.warn(facts, "billing lines were refused");
  }
}

function waitOf({ again }: NotTaken, tries: number, intervalS: number): number {
  switch (again) {
    case "soon":
      return intervalS * Math.min(MAX_BACKOFF, 2 ** Math.min(tries - 1, 10));
    case "tomorrow":
    case "too_late":
      return DAY_S;
  }
}
