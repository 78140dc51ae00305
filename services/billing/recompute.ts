import { compareRecord } from "../../core/billing/recompute";
import type { Queryable } from "../../platform/postgres/pool";
import { listWrongDays } from "./billing-days";
import { readRecords } from "./billing-records";
import { listInconsistentRecords, listWrongSums, listWrongTotals } from "./billing-totals";

const BATCH = 1_000;
/** The most differences of one kind that are reported. */
const MAX_DIFFERENCES = 1_000;

export interface Recomputed {
  records: number;
  /** One line of text each; empty if all is right. */
  differences: string[];
}

/**
 * Verifies billing. Recomputes each record from its stored metrics and rate card, compares it with its job and
 * attempts and with the sum of its lines, and compares all totals and days with their lines. Reports at most 1000
 * differences of each kind between stored rows. Read-only.
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
  for (const { job_id: id, what } of await listInconsistentRecords(db)) {
    differences.push(`record ${id}: ${what}`);
  }
  for (const { job_id: id, total, billed } of await listWrongSums(db)) {
    differences.push(`record ${id}: its lines add up to ${billed}, but its total is ${total}`);
  }
  for (const wrong of await listWrongTotals(db)) {
    differences.push(
      `total of ${wrong.user_id}, ${wrong.month}, ${wrong.dimension} "${wrong.value}": ` +
        `${wrong.kept ?? "none"} is stored, but its lines add up to ${wrong.plain ?? "none"}`,
    );
  }
  for (const { user_id: userId, day, job_type: type, kept, plain } of await listWrongDays(
    db,
    MAX_DIFFERENCES,
  )) {
    differences.push(
      `day ${day} of ${userId}, ${type}: ${kept ?? "none"} is stored, but its lines add up to ${plain ?? "none"}`,
    );
  }
  return { records, differences };
}
