import { RAW_DATASET } from "../../core/artifacts/artifact-form";
import type { Manifest } from "../../core/artifacts/manifest-schema";
import { isOlder } from "../../platform/postgres/clock";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { type ArtifactRow, COLUMNS, type Reservation } from "./artifacts";

/**
 * Reserves a dataset's folder before its upload, so that the sweeper finds the upload if this
 * process crashes.
 */
export async function reserveDataset(
  db: Queryable,
  given: Pick<Reservation, "storageId" | "userId" | "uri" | "createdBy">,
): Promise<void> {
  await execute(
    db,
    `insert into artifacts (artifact_id, user_id, artifact_type, kind, uri, created_by)
     values ($1, $2, '${RAW_DATASET.type}', '${RAW_DATASET.kind}', $3, $4)`,
    [given.storageId, given.userId, given.uri, given.createdBy],
  );
}

/** Age after which an unregistered upload counts as abandoned. No upload takes this long. */
const ABANDONED_AFTER = "interval '7 days'";

export interface AbandonedUpload extends Pick<ArtifactRow, "storage_id" | "kind"> {
  /** As text, because a Date would drop the microseconds. */
  begun_at: string;
}

/**
 * Unregistered uploads older than ABANDONED_AFTER, oldest first.
 *
 * @param after the last upload of the previous page; its row may be deleted by now.
 */
export async function listAbandonedUploads(
  db: Queryable,
  after: AbandonedUpload | undefined,
  limit: number,
) {
  return await all<AbandonedUpload>(
    db,
    `select artifact_id as storage_id, kind, created_at::text as begun_at from artifacts
     where registered_at is null and job_id is null and ${isOlder("created_at", ABANDONED_AFTER)}
       and (created_at, artifact_id) > ($1::timestamptz, $2)
     order by created_at, artifact_id limit $3`,
    [after?.begun_at ?? "-infinity", after?.storage_id ?? "", limit],
  );
}

/**
 * Returns true if an upload has no row or its row is not registered. If the connection was lost
 * during the commit, Postgres may still be running the transaction that registers the upload. So
 * this function locks the row, which waits for that transaction.
 */
export async function isUnregistered(db: Queryable, storageId: string): Promise<boolean> {
  const row = await maybeOne<{ registered_at: Date | null }>(
    db,
    "select registered_at from artifacts where artifact_id = $1 for update",
    [storageId],
  );
  return row === undefined || row.registered_at === null;
}

/** Deletes the row of an upload, unless it was registered in the meantime. */
export async function deleteAbandonedUpload(db: Queryable, storageId: string): Promise<void> {
  await execute(
    db,
    "delete from artifacts where artifact_id = $1 and registered_at is null and job_id is null",
    [storageId],
  );
}

export interface UploadedDataset {
  storageId: string;
  name: string | null;
  sizeBytes: number;
  manifest: Manifest;
}

/** Registers an uploaded dataset that was reserved before. */
export async function registerDataset(db: Queryable, given: UploadedDataset): Promise<ArtifactRow> {
  const row = await maybeOne<ArtifactRow>(
    db,
    `update artifacts set created_at = ($3::jsonb->>'created_at')::timestamptz, size_bytes = $2,
            manifest = $3, registered_at = now(), name = $4
     where artifact_id = $1 and registered_at is null
     returning ${COLUMNS}`,
    [given.storageId, given.sizeBytes, given.manifest, given.name],
  );
  if (!row) throw new Error(`the upload ${given.storageId} is not reserved`);
  return row;
}
