import type { ArtifactType } from "../../core/artifacts";
import type { Manifest } from "../../core/manifest";
import { listPage, type Page, Where, type WithPosition } from "./pages";
import { all, execute, maybeOne, type Queryable } from "./pool";
import type { Viewer } from "./viewer";

export interface ArtifactRow {
  artifact_id: string;
  user_id: string;
  job_id: string | null;
  artifact_type: ArtifactType;
  kind: string;
  uri: string;
  created_by: string;
  created_at: Date;
  source_jobs: string[];
  source_artifacts: string[];
  size_bytes: number | null;
  /** Only a registered one is shown, and that has its manifest. */
  manifest: Manifest;
  /** What its owner calls an uploaded dataset. */
  name: string | null;
}

export interface Reservation {
  artifactId: string;
  userId: string;
  jobId: string;
  attempt: number;
  artifactType: ArtifactType;
  kind: string;
  uri: string;
  createdBy: string;
}

/** Claims an artifact id for a job's winning attempt; false when another job owns it. */
export async function reserveArtifact(db: Queryable, given: Reservation): Promise<boolean> {
  const inserted = await execute(
    db,
    `insert into artifacts (artifact_id, user_id, job_id, attempt, artifact_type, kind, uri, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (artifact_id) do nothing`,
    [
      given.artifactId,
      given.userId,
      given.jobId,
      given.attempt,
      given.artifactType,
      given.kind,
      given.uri,
      given.createdBy,
    ],
  );
  return inserted === 1;
}

export async function findArtifact(
  db: Queryable,
  artifactId: string,
  viewer: Viewer,
): Promise<ArtifactRow | undefined> {
  return await maybeOne<ArtifactRow>(
    db,
    `select * from artifacts
     where artifact_id = $1 and registered_at is not null and ($2::text is null or user_id = $2)`,
    [artifactId, viewer],
  );
}

export interface ArtifactFilter {
  type?: ArtifactType | undefined;
  jobId?: string | undefined;
}

/** One page of registered artifacts, newest first. */
export async function listArtifacts(
  db: Queryable,
  viewer: Viewer,
  filter: ArtifactFilter,
  page: Page,
): Promise<WithPosition<ArtifactRow>[]> {
  const where = new Where()
    .and("registered_at is not null")
    .seenBy(viewer)
    .also(filter.type, (type) => `artifact_type = ${type}`)
    .also(filter.jobId, (job) => `job_id = ${job}`);
  return await listPage<ArtifactRow>(db, {
    select: "*",
    from: "artifacts",
    order: ["created_at", "artifact_id"],
    where,
    page,
    sizedBy: "shown_bytes",
  });
}

export async function listJobArtifacts(
  db: Queryable,
  jobId: string,
  viewer: Viewer,
): Promise<ArtifactRow[]> {
  return await all<ArtifactRow>(
    db,
    `select * from artifacts where job_id = $1 and registered_at is not null
       and ($2::text is null or user_id = $2) order by artifact_id`,
    [jobId, viewer],
  );
}

/** Of these ids, those that are this tenant's registered artifacts. */
export async function findOwnArtifacts(
  db: Queryable,
  userId: string,
  ids: string[],
): Promise<ArtifactRow[]> {
  return await all<ArtifactRow>(
    db,
    `select * from artifacts
     where user_id = $1 and artifact_id = any($2) and registered_at is not null`,
    [userId, ids],
  );
}

export interface UploadedDataset {
  artifactId: string;
  userId: string;
  uri: string;
  name: string | null;
  createdBy: string;
  sizeBytes: number;
  manifest: Manifest;
}

/** Registers a dataset that no job made. */
export async function insertUploadedDataset(
  db: Queryable,
  given: UploadedDataset,
): Promise<ArtifactRow> {
  const row = await maybeOne<ArtifactRow>(
    db,
    `insert into artifacts (artifact_id, user_id, artifact_type, kind, uri, created_by, created_at,
                            size_bytes, manifest, registered_at, name)
     values ($1, $2, 'dataset', 'raw_dataset', $3, $4, ($6::jsonb->>'created_at')::timestamptz, $5,
             $6, now(), $7)
     returning *`,
    [
      given.artifactId,
      given.userId,
      given.uri,
      given.createdBy,
      given.sizeBytes,
      given.manifest,
      given.name,
    ],
  );
  if (!row) throw new Error("insert returned no artifact");
  return row;
}
