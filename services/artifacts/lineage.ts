import { all, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "../jobs/all-jobs";
import type { JobRow } from "../jobs/jobs";
import { ARTIFACTS, type ArtifactRow } from "./artifacts";

export type LineageArtifact = Pick<
  ArtifactRow,
  | "artifact_id"
  | "storage_id"
  | "artifact_type"
  | "kind"
  | "name"
  | "created_at"
  | "deleted_at"
  | "source_artifacts"
  | "source_jobs"
> & {
  /**
   * The sources that the artifact's manifest names. Not every name is the id of an artifact: for
   * example, a teacher can be `builtin:…`.
   */
  named: string[];
};

/**
 * Lists an artifact, its direct and transitive sources, and all artifacts made from it, directly or
 * transitively. Returns at most `limit` artifacts in each direction. Excludes siblings: other
 * artifacts that were made from the same sources.
 */
export async function listLineage(
  db: Queryable,
  artifactId: string,
  userId: string,
  limit: number,
) {
  return await all<LineageArtifact>(
    db,
    `with recursive
     up (artifact_id) as (
       select $1::text
       union
       select source from up join ${ARTIFACTS} a on a.artifact_id = up.artifact_id and a.user_id = $2
       cross join unnest(a.source_artifacts) as source),
     down (artifact_id) as (
       select $1::text
       union
       select a.artifact_id from down join ${ARTIFACTS} a
         on a.source_artifacts @> array[down.artifact_id] and a.user_id = $2
        and a.registered_at is not null)
     select artifact_id, storage_id, artifact_type, kind, name, created_at, deleted_at, source_artifacts,
            source_jobs,
            array_remove(array[manifest->>'dataset_used', manifest->>'base_model',
              manifest->'job_params'->>'teacher', manifest->'job_params'->>'benchmark',
              manifest->'job_params'->>'judge'], null) as named
     from ${ARTIFACTS} a
     where user_id = $2 and registered_at is not null and artifact_id in (
       (select artifact_id from up limit $3) union (select artifact_id from down limit $3))
     order by created_at, artifact_id`,
    [artifactId, userId, limit],
  );
}

type LineageJob = Pick<JobRow, "job_id" | "job_type" | "status" | "pipeline_id" | "created_at">;

export async function listLineageJobs(db: Queryable, jobIds: string[], userId: string) {
  return await all<LineageJob>(
    db,
    `select job_id, job_type, status, pipeline_id, created_at from ${ALL_JOBS} jobs
     where job_id = any($1) and user_id = $2 order by created_at, job_id`,
    [jobIds, userId],
  );
}
