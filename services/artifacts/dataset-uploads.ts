import type { Manifest } from "../../core/artifacts/manifest-schema";
import { isOlder } from "../../platform/postgres/clock";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { type ArtifactRow, COLUMNS, type Reservation } from "./artifacts";

/** Where an upload goes, before it comes: what its server does not live to end is found again. */
export async function reserveDataset(
  db: Queryable,
  given: Pick<Reservation, "storageId" | "userId" | "uri" | "createdBy">,
): Promise<void> {
  await execute(
    db,
    `insert into artifacts (artifact_id, user_id, artifact_type, kind, uri, created_by)
     values ($1, $2, 'dataset', 'raw_dataset', $3, $4)`,
    [given.storageId, given.userId, given.uri, given.createdBy],
  );
}

/** An upload takes days at most. */
const ABANDONED_AFTER = "interval '7 days'";

export interface Abandoned extends Pick<ArtifactRow, "storage_id" | "kind"> {
  /** As text, with its microseconds. */
  begun_at: string;
}

/**
 * Uploads that were begun, and neither registered nor given up.
 *
 * @param after only those that come after this one, which is perhaps gone by now.
 */
export async function listAbandoned(
  db: Queryable,
  after: Abandoned | undefined,
  limit: number,
): Promise<Abandoned[]> {
  return await all(
    db,
    `select artifact_id as storage_id, kind, created_at::text as begun_at from artifacts
     where registered_at is null and job_id is null and ${isOlder("created_at", ABANDONED_AFTER)}
       and (created_at, artifact_id) > ($1::timestamptz, $2)
     order by created_at, artifact_id limit $3`,
    [after?.begun_at ?? "-infinity", after?.storage_id ?? "", limit],
  );
}

/** Forgets an upload that was given up; one that was registered meanwhile stays. */
export async function dropAbandoned(db: Queryable, storageId: string): Promise<void> {
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

/** Registers a dataset that no job made, and that was reserved. */
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
