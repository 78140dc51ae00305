/** A line of what a tenant owes, as it is told to others. Amounts are exact. */
export interface ExportedLine {
  /** The record's id: whoever gets it twice, by this has it once. */
  line_id: string;
  user_id: string;
  /** The tenant's at the payment processor. */
  customer_id: string | null;
  /** YYYY-MM */
  month: string;
  /** Null: storage. */
  job_id: string | null;
  job_type: string | null;
  cost_usd: string;
  gpu_hours: number;
  tokens: number;
  /** Of storage only. */
  gb_months: number | null;
  created_at: Date;
}

/** A line that is due, with what a decision about it takes: by the database's clock. */
export interface DueLine extends ExportedLine {
  /** This one included. */
  tries: number;
  /** Without steps of the clock forward. */
  age_s: number;
  /** For how long it may have arrived without our knowing; null: it can't have. */
  in_doubt_s: number | null;
}

export type Delivery = { taken: true } | NotTaken;

export interface NotTaken {
  taken: false;
  /** A stable code, a colon, and what is wrong. */
  reason: string;
  /**
   * `soon`: the other side is away, which is not this line's fault. `tomorrow`: it refuses this line, until
   * somebody puts something right there. `too_late`: for its age nothing that we could send would be right, and
   * nothing was sent; its age is looked at again, in case it was told by a wrong clock.
   */
  again: "soon" | "tomorrow" | "too_late";
  /** The other side may have taken it all the same. */
  mayHaveArrived: boolean;
}

/**
 * Tells somebody else what is owed. Lines are delivered one by one, so that each is answered for itself;
 * one that was delivered before must change nothing.
 */
export interface UsageExporter {
  readonly name: string;
  /** Lines of tenants without a customer id wait. */
  readonly needsCustomer: boolean;
  /** Lines of one lane are delivered one after the other, those of different lanes side by side. */
  laneOf(line: ExportedLine): string;
  /** Never throws: whatever goes wrong is a delivery that was not taken. */
  deliver(line: DueLine): Promise<Delivery>;
}
