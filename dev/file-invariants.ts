import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import type pg from "pg";
import {
  BILLING_RECORDS,
  billingRecordKey,
  MANIFEST_FILE,
  prefixOfKind,
} from "../core/artifacts/artifacts";
import type { Manifest } from "../core/artifacts/manifest-schema";
import { presentBillingRecord } from "../core/billing/record";
import { all } from "../platform/postgres/pool";
import type { ObjectStore } from "../platform/store/object-store";
import type { BillingRow } from "../services/billing/billing-records";
import { ALL_JOBS } from "../services/jobs/all-jobs";
import { inParallel } from "./in-parallel";

interface Place {
  pool: pg.Pool;
  store: ObjectStore;
}

/**
 * Compares Forge's files with the rows that describe them in the database. No file may be missing,
 * differ from its row, or exist without a row.
 */
export async function compareFiles(place: Place): Promise<string[]> {
  return [...(await compareManifests(place)), ...(await compareBills(place))];
}

interface FiledRow {
  storage_id: string;
  kind: string;
  manifest: Manifest;
  deleted_at: Date | null;
  bytes_removed_at: Date | null;
}

/** Compares the folders of all artifacts: of jobs, deployments and uploads. */
async function compareManifests({ pool, store }: Place): Promise<string[]> {
  const rows = await all<FiledRow>(
    pool,
    `select artifact_id as storage_id, kind, manifest, deleted_at, bytes_removed_at
     from artifacts where registered_at is not null`,
  );
  return await inParallel(rows, async (row) => {
    const prefix = prefixOfKind(row.kind, row.storage_id);
    if (row.deleted_at !== null) {
      const isEmpty = row.bytes_removed_at === null || (await store.list(prefix)).length === 0;
      return isEmpty ? [] : [`I3 a deleted artifact has files: ${row.storage_id}`];
    }
    const found: string[] = [];
    const manifest = await readJson(store, `${prefix}${MANIFEST_FILE}`);
    if (!isDeepStrictEqual(manifest, row.manifest)) {
      found.push(`I3 manifest.json differs from the registry: ${row.storage_id}`);
    }
    if (!(await hasItsFiles(store, prefix, row.manifest))) {
      found.push(`I3 the stored files do not match the manifest: ${row.storage_id}`);
    }
    return found;
  });
}

/** Compares names and sizes only. `forge artifacts verify` compares the bytes. */
async function hasItsFiles(
  store: ObjectStore,
  prefix: string,
  { files }: Pick<Manifest, "files">,
): Promise<boolean> {
  const stored = (await store.list(prefix)).filter(({ path }) => path !== MANIFEST_FILE);
  const named = files.map(({ path, size_bytes: sizeBytes }) => ({ path, sizeBytes }));
  return isDeepStrictEqual(stored, named);
}

async function compareBills({ pool, store }: Place): Promise<string[]> {
  const records = await all<BillingRow>(pool, "select * from billing_records");
  const differing = await inParallel(records, async (record) => {
    const file = await readJson(store, billingRecordKey(record.user_id, record.job_id));
    return isDeepStrictEqual(file, presentBillingRecord(record))
      ? []
      : [`I2 the billing file differs from its row: ${record.job_id}`];
  });
  const stored = new Set((await store.list(BILLING_RECORDS)).map(({ path }) => path));
  // Check only jobs that are in the database. A restored database may have lost a job. Forge then
  // doesn't know the job's files and can't remove them.
  const unbilled = await all<{ job_id: string; user_id: string }>(
    pool,
    `select job_id, user_id from ${ALL_JOBS} j
     where not exists (select from billing_records b where b.job_id = j.job_id)`,
  );
  const leftOver = unbilled
    .map(({ user_id: userId, job_id: jobId }) => billingRecordKey(userId, jobId))
    .filter((key) => stored.has(key.slice(BILLING_RECORDS.length)));
  return [...differing, ...leftOver.map((key) => `I2 a billing file without a record: ${key}`)];
}

/** Returns undefined if the file can't be read or is not JSON. */
const readJson = async (store: ObjectStore, key: string): Promise<unknown> => {
  try {
    return JSON.parse(await text(store.read(key)));
  } catch {
    return undefined;
  }
};
