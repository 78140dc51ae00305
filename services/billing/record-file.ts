import { isDeepStrictEqual } from "node:util";
import { billingRecordKey } from "../../core/artifacts/artifacts";
import { presentBillingRecord } from "../../core/billing/record";
import type { Queryable } from "../../platform/postgres/pool";
import { holdsJson, putJson } from "../../platform/store/object-store";
import type { Context } from "../context";
import { type BillingRow, findBillingRecord } from "./billing-records";

type Stores = Pick<Context, "pool" | "store">;
type RecordKey = Pick<BillingRow, "job_id" | "user_id">;

/**
 * Writes the record as a file to the object store. Idempotent: the file is rendered from the row.
 * Only for callers that check afterwards that the row has not changed; other callers use
 * `syncRecordFile`.
 */
export const putRecordFile = (ctx: Stores, record: BillingRow): Promise<void> =>
  putJson(ctx.store, billingRecordKey(record.user_id, record.job_id), presentBillingRecord(record));

/**
 * Writes the file of a job's record, or removes the file if there is no record. Reads the row again
 * after each write, until file and row agree: this process may have been suspended before the
 * write, and may have overwritten the file of a newer bill. Even a final record can be followed by
 * a newer one, if the database lost the final record.
 */
export async function syncRecordFile(
  ctx: Stores,
  { job_id: jobId, user_id: userId }: RecordKey,
): Promise<void> {
  for (let written: object | null | undefined; ; ) {
    const record = await findBillingRecord(ctx.pool, jobId, null);
    const content = record ? presentBillingRecord(record) : null;
    if (isDeepStrictEqual(content, written)) return;
    if (record) await putRecordFile(ctx, record);
    else await ctx.store.remove(billingRecordKey(userId, jobId));
    written = content;
  }
}

/**
 * Reads the file of a job's record, and calls `syncRecordFile` if it differs from the record or if
 * there is no record. The file is nearly always right: it is wrong only if a process ended right
 * after it had written an old bill.
 */
export async function checkRecordFile(ctx: Stores, job: RecordKey): Promise<void> {
  const record = await findBillingRecord(ctx.pool, job.job_id, null);
  const key = billingRecordKey(job.user_id, job.job_id);
  const isRight = record && (await holdsJson(ctx.store, key, presentBillingRecord(record)));
  if (!isRight) await syncRecordFile(ctx, job);
}

export async function requireRecord(
  { pool }: { pool: Queryable },
  jobId: string,
): Promise<BillingRow> {
  const record = await findBillingRecord(pool, jobId, null);
  if (!record) throw new Error(`job ${jobId} has no billing record`);
  return record;
}
