import type { ArtifactType } from "../../core/artifacts";
import type { Manifest } from "../../core/manifest";
import { all, execute, maybeOne, type Queryable } from "./pool";

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
  manifest: Manifest | null;
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
  userId: string | null,
): Promise<ArtifactRow | undefined> {
  return await maybeOne<ArtifactRow>(
    db,
    `select * from artifacts
     where artifact_id = $1 and registered_at is not null and ($2::text is null or user_id = $2)`,
    [artifactId, userId],
  );
}

export async function listJobArtifacts(db: Queryable, jobId: string): Promise<ArtifactRow[]> {
  return await all<ArtifactRow>(
    db,
    "select * from artifacts where job_id = $1 and registered_at is not null order by artifact_id",
    [jobId],
  );
}

/** Of these ids, those that are this tenant's registered artifacts. */
export async function findOwnArtifacts(
  db: Queryable,
  userId: string,
  ids: string[],
): Promise<string[]> {
  const rows = await all<{ artifact_id: string }>(
    db,
    `select artifact_id from artifacts
     where user_id = $1 and artifact_id = any($2) and registered_at is not null`,
    [userId, ids],
  );
  return rows.map((row) => row.artifact_id);
}
