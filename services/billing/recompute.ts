import { compareRecord } from "../../core/billing/recompute";
import type { Queryable } from "../../platform/postgres/pool";
import { listWrongDays } from "./billing-days";
import { readRecords } from "./billing-records";
import { listStrayRecords, listWrongSums, listWrongTotals } from "./billing-totals";

const BATCH = 1_000;
/** Differences of one kind that are told. */
const MOST = 1_000;

export interface Recomputed {
  records: number;
  /** One line each; none is the proof. */
  differences: string[];
}

/**
 * Computes every billing record again from the metrics and the rate card that it keeps, adds up the months
 * that bear it, and every month's total from its lines; and compares it with the job and the attempts that
 * it was made from. Of each kind of difference a thousand are told at most. Changes nothing.
 */
export async function recompute(db: Queryable): Promise<Recomputed> {
  const differences: string[] = [];
  let records = 0;
  for (let after = ""; ; ) {
    const batch = await readRecords(db, after, BATCH);
    for (const record of batch) {
      const found = compareRecord(record);
      differences.push(...found.map((difference) => `record ${record.job_id}: ${difference}`));
    }
    records += batch.length;
    const last = batch.at(-1);
    if (!last) break;
    after = last.job_id;
  }
  for (const { job_id: id, what } of await listStrayRecords(db)) {
    differences.push(`record ${id}: ${what}`);
  }
  for (const { job_id: id, total, borne } of await listWrongSums(db)) {
    differences.push(`record ${id}: its months bear ${borne}, and it comes to ${total}`);
  }
  for (const wrong of await listWrongTotals(db)) {
    differences.push(
      `total of ${wrong.user_id}, ${wrong.month}, ${wrong.dimension} "${wrong.value}": ` +
        `${wrong.kept ?? "none"} is kept, and its lines come to ${wrong.plain ?? "none"}`,
    );
  }
  for (const { user_id: userId, day, job_type: type, kept, plain } of await listWrongDays(
    db,
    MOST,
  )) {
    differences.push(
      `day ${day} of ${userId}, ${type}: ${kept ?? "none"} is kept, and its lines come to ${plain ?? "none"}`,
    );
  }
  return { records, differences };
}
