import type { ArtifactType } from "../../core/artifacts";
import type { Manifest } from "../../core/manifest-schema";
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
  /** Its bytes are gone, or about to go. */
  deleted_at: Date | null;
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
  kinds?: string[] | undefined;
  jobId?: string | undefined;
  /** Made from this artifact. */
  source?: string | undefined;
  name?: string | undefined;
  createdAfter?: string | undefined;
  createdBefore?: string | undefined;
  /** True: deleted ones too. */
  deleted?: boolean | undefined;
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
    .also(filter.kinds, (kinds) => `kind = any(${kinds})`)
    .also(filter.jobId, (job) => `job_id = ${job}`)
    .also(filter.source, (source) => `source_artifacts @> array[${source}]`)
    .also(filter.name, (name) => `name = ${name}`)
    .also(filter.createdAfter, (time) => `created_at > ${time}`)
    .also(filter.createdBefore, (time) => `created_at < ${time}`)
    .and(filter.deleted ? "true" : "deleted_at is null");
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

/** Of these ids, those that are this tenant's artifacts or were, in their order: what something was made from. */
export async function findSources(
  db: Queryable,
  userId: string,
  ids: string[],
): Promise<{ artifactId: string; isDataset: boolean }[]> {
  return await all(
    db,
    `select artifact_id as "artifactId", artifact_type = 'dataset' as "isDataset"
     from unnest($2::text[]) with ordinality as named (artifact_id, place) join artifacts using (artifact_id)
     where user_id = $1 and registered_at is not null
     group by artifact_id, artifact_type order by min(place)`,
    [userId, ids],
  );
}

/** Of these ids, those that are this tenant's registered artifacts, and not deleted. */
export async function findOwnArtifacts(
  db: Queryable,
  userId: string,
  ids: string[],
): Promise<ArtifactRow[]> {
  return await all<ArtifactRow>(
    db,
    `select * from artifacts
     where user_id = $1 and artifact_id = any($2) and registered_at is not null
       and deleted_at is null`,
    [userId, ids],
  );
}

/** Where an upload goes, before it comes: what its server does not live to end is found again. */
export async function reserveDataset(
  db: Queryable,
  given: Pick<Reservation, "artifactId" | "userId" | "uri" | "createdBy">,
): Promise<void> {
  await execute(
    db,
    `insert into artifacts (artifact_id, user_id, artifact_type, kind, uri, created_by)
     values ($1, $2, 'dataset', 'raw_dataset', $3, $4)`,
    [given.artifactId, given.userId, given.uri, given.createdBy],
  );
}

/** An upload takes days at most. */
const ABANDONED_AFTER = "7 days";

/** Uploads that were begun, and neither registered nor given up. */
export async function listAbandoned(
  db: Queryable,
  limit: number,
): Promise<Pick<ArtifactRow, "artifact_id" | "kind">[]> {
  return await all(
    db,
    `select artifact_id, kind from artifacts
     where registered_at is null and job_id is null and created_at < now() - interval '${ABANDONED_AFTER}'
     limit $1`,
    [limit],
  );
}

/** Forgets an upload that was given up; one that was registered meanwhile stays. */
export async function dropAbandoned(db: Queryable, artifactId: string): Promise<void> {
  await execute(
    db,
    "delete from artifacts where artifact_id = $1 and registered_at is null and job_id is null",
    [artifactId],
  );
}

export interface UploadedDataset {
  artifactId: string;
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
     returning *`,
    [given.artifactId, given.sizeBytes, given.manifest, given.name],
  );
  if (!row) throw new Error(`the upload ${given.artifactId} is not reserved`);
  return row;
}
