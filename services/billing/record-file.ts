import { isDeepStrictEqual } from "node:util";
import { billingRecordKey } from "../../core/artifacts/artifacts";
import { presentBillingRecord } from "../../core/billing/record";
import type { Queryable } from "../../platform/postgres/pool";
import { holdsJson, putJson } from "../../platform/store/object-store";
import type { Context } from "../context";
import { type BillingRow, findBillingRecord } from "./billing-records";

type Place = Pick<Context, "pool" | "store">;
type RecordKey = Pick<BillingRow, "job_id" | "user_id">;

/**
 * Writes the record as a file to the object store. Idempotent: the file is rendered from the row.
 * Reads the row again after each write, because a process that was suspended in between may have
 * overwritten a newer state. A final record changes only if an operator withdraws it before its job
 * completes; finishJob then removes the file.
 */
export async function writeRecordFile(place: Place, record: BillingRow): Promise<void> {
  const key = billingRecordKey(record.user_id, record.job_id);
  for (let now = record; ; ) {
    const content = presentBillingRecord(now);
    await putJson(place.store, key, content);
    if (now.state === "final") return;
    now = await requireRecord(place, record.job_id);
    if (isDeepStrictEqual(presentBillingRecord(now), content)) return;
  }
}

/**
 * Writes the file of an ended job's record, or removes it if there is none. Call if another process
 * has ended the job: this one may have written the file of a bill that the database lost, or that
 * an operator withdrew.
 */
export async function syncRecordFile(
  place: Place,
  { job_id: jobId, user_id: userId }: RecordKey,
): Promise<void> {
  const write = async (): Promise<boolean> => {
    const record = await findBillingRecord(place.pool, jobId, null);
    if (record) await writeRecordFile(place, record);
    return record !== undefined;
  };
  if (await write()) return;
  await place.store.remove(billingRecordKey(userId, jobId));
  // The bill may have been written meanwhile.
  await write();
}

/**
 * Like `syncRecordFile`, for a file that is nearly always right: it differs only if a process ended
 * right after it wrote an old bill.
 */
export async function checkRecordFile(place: Place, job: RecordKey): Promise<void> {
  const record = await findBillingRecord(place.pool, job.job_id, null);
  const key = billingRecordKey(job.user_id, job.job_id);
  const isRight = record && (await holdsJson(place.store, key, presentBillingRecord(record)));
  if (!isRight) await syncRecordFile(place, job);
}

export async function requireRecord(
  { pool }: { pool: Queryable },
  jobId: string,
): Promise<BillingRow> {
  const record = await findBillingRecord(pool, jobId, null);
  if (!record) throw new Error(`job ${jobId} has no billing record`);
  return record;
}
