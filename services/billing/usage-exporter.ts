/** A billing line as exporters receive it. Amounts are exact. */
export interface ExportedLine {
  /** Idempotency key: the receiver drops duplicates. */
  line_id: string;
  user_id: string;
  /** The tenant's customer id at the payment processor. */
  customer_id: string | null;
  /** YYYY-MM */
  month: string;
  /** Null for storage. */
  job_id: string | null;
  job_type: string | null;
  cost_usd: string;
  gpu_hours: number;
  tokens: number;
  /** Null unless the line is for storage. */
  gb_months: number | null;
  created_at: Date;
}

/**
 * A billing line that is due for export, with the data by which an exporter decides whether to send
 * it. Times are by the database's clock.
 */
export interface DueLine extends ExportedLine {
  /** Number of claims, including this one. Excludes claims that were released without a send. */
  tries: number;
  /**
   * Age of the line in seconds. Does not count time that the clock skipped when it was set forward.
   */
  age_s: number;
  /** Seconds since the first send with an unknown result; null if all results are known. */
  in_doubt_s: number | null;
}

export type Delivery = Delivered | NotDelivered;

interface Delivered {
  accepted: true;
  /** What an operator should check: a stable code, a colon, and a message. */
  warning?: string;
}

export interface NotDelivered {
  accepted: false;
  /** A stable code, a colon, and a message. */
  reason: string;
  /**
   * When to retry. `soon`: the receiver is unavailable. `tomorrow`: the receiver rejects this line
   * until an operator fixes the cause. `too_late`: this delivery did not send the line, because the
   * line is too old, or because an earlier send without a known result was too long ago. This is
   * checked again tomorrow, because the clock may have been wrong.
   */
  retry: "soon" | "tomorrow" | "too_late";
  /** True if the receiver may have accepted the line. */
  mayHaveArrived: boolean;
}

/**
 * Delivers billing lines to another system, one by one, so that each has its own result. `deliver`
 * must be idempotent.
 */
export interface UsageExporter {
  readonly name: string;
  /** Whether lines of tenants without a customer id must wait. */
  readonly needsCustomer: boolean;
  /** Lines of one lane are delivered one at a time, different lanes concurrently. */
  laneOf(line: ExportedLine): string;
  /** Never throws: a failure is a delivery with `accepted: false`. */
  deliver(line: DueLine): Promise<Delivery>;
}
