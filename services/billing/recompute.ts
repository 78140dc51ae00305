import { compareRecord } from "../../core/billing/recompute";
import type { Queryable } from "../../platform/postgres/pool";
import { listWrongDays } from "./billing-days";
import { readRecords } from "./billing-records";
import {
  listInconsistentRecords,
  listWrongSums,
  listWrongTotals,
  MAX_DIFFERENCES,
} from "./billing-totals";

const BATCH = 1_000;

export interface Recomputed {
  records: number;
  /** One text per difference; empty if billing is correct. */
  differences: string[];
}

/**
 * Verifies billing, read-only. Recomputes each record from its stored metrics and rate card, and
 * compares it with its job, its attempts and the sum of its lines. Compares each monthly total and
 * each daily amount with the sum of its lines. Reports all wrong records, and at most 1000
 * differences of each other kind.
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
        `${wrong.stored ?? "none"} is stored, but its lines add up to ${wrong.recomputed ?? "none"}`,
    );
  }
  for (const wrong of await listWrongDays(db, MAX_DIFFERENCES)) {
    differences.push(
      `day ${wrong.day} of ${wrong.user_id}, ${wrong.job_type}: ` +
        `${wrong.stored ?? "none"} is stored, but its lines add up to ${wrong.recomputed ?? "none"}`,
    );
  }
  return { records, differences };
}
