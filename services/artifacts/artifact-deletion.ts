import { isOlder } from "../../platform/postgres/clock";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ARTIFACTS, type ArtifactRow } from "./artifacts";

const MAX_DEPENDENTS = 20;

/**
 * SQL: the forms in which JSON text can refer to artifact `a`: its artifact id or its storage id,
 * as a whole string or as a path segment of a URI.
 */
const NAMES = `array['"' || a.artifact_id || '"', '/' || a.artifact_id || '/', '/' || a.artifact_id || '"',
                     '"' || a.storage_id || '"', '/' || a.storage_id || '/', '/' || a.storage_id || '"']`;

/**
 * SQL: the dependents of artifact `a`: existing artifacts made from it, active jobs and pipelines
 * that refer to it, and the active pipeline whose job produced it. A payload can refer to an
 * artifact in several places, so its whole JSON text is searched for NAMES.
 */
const DEPENDENTS = `
  select 'artifact' as type, made.artifact_id as id from ${ARTIFACTS} made
  where made.source_artifacts @> array[a.artifact_id] and made.user_id = a.user_id
    and made.registered_at is not null and made.deleted_at is null
  union all
  select 'job', j.job_id from jobs j
  where j.user_id = a.user_id and j.status not in ('completed', 'failed')
    and exists (
      select from unnest(${NAMES}) as named
      where position(named in j.payload::text || j.params::text) > 0)
  union all
  select distinct 'pipeline', p.pipeline_id from pipelines p join pipeline_steps s using (pipeline_id)
  where p.user_id = a.user_id and p.status in ('running', 'waiting_approval')
    and (s.job_id = a.job_id or exists (
      select from unnest(${NAMES}) as named where position(named in s.payload::text) > 0))`;

/** Locks a registered artifact's row, so that no other transaction deletes it. */
export async function lockArtifact(db: Queryable, storageId: string) {
  return await maybeOne<ArtifactRow>(
    db,
    `select * from ${ARTIFACTS} a where storage_id = $1 and registered_at is not null for update`,
    [storageId],
  );
}

/** The artifact's dependents (see DEPENDENTS), at most MAX_DEPENDENTS. */
export async function listDependents(db: Queryable, storageId: string) {
  return await all<{ type: "artifact" | "job" | "pipeline"; id: string }>(
    db,
    `select d.type, d.id from ${ARTIFACTS} a cross join lateral (${DEPENDENTS}) d
     where a.storage_id = $1 limit ${MAX_DEPENDENTS}`,
    [storageId],
  );
}

/**
 * Marks an artifact deleted and returns the time of the deletion. Idempotent: if the artifact is
 * deleted already, its `deleted_at` and `deleted_by` don't change.
 */
export async function markDeleted(
  db: Queryable,
  storageId: string,
  deletedBy: string,
): Promise<Date> {
  const row = await maybeOne<{ deleted_at: Date }>(
    db,
    `update artifacts set deleted_at = coalesce(deleted_at, now()),
            deleted_by = coalesce(deleted_by, $2)
     where artifact_id = $1 returning deleted_at`,
    [storageId, deletedBy],
  );
  if (!row) throw new Error(`artifact ${storageId} is not in the registry`);
  return row.deleted_at;
}

/** The value of `deleted_by` for artifacts deleted by a retention rule. */
const BY_RETENTION = "retention";

export interface TenantRule {
  user_id: string;
  kind: string;
  keep_days: number;
}

export async function listTenantRules(db: Queryable) {
  return await all<TenantRule>(db, "select user_id, kind, keep_days from retention_rules");
}

/** An artifact older than its retention rule allows. */
export interface Expired {
  storage_id: string;
  /** False if something depends on the artifact, or if it is a deployment that is not stopped. */
  is_deleted: boolean;
}

/**
 * Reads the next `limit` artifacts that are older than a retention rule allows, oldest first. Marks
 * them deleted, except those that something depends on and deployments that are not stopped.
 *
 * @param after the last artifact of the previous page.
 */
export async function markExpiredDeleted(
  db: Queryable,
  rule: TenantRule,
  after: Expired | undefined,
  limit: number,
) {
  return await all<Expired>(
    db,
    `with expired as (
       select a.artifact_id, a.storage_id, a.created_at, a.user_id, a.job_id from ${ARTIFACTS} a
       where a.user_id = $1 and a.kind = $2 and a.registered_at is not null and a.deleted_at is null
         and ${isOlder("a.created_at", "make_interval(days => $3)")}
         and ($4::text is null or (a.created_at, a.storage_id) >
              (select created_at, artifact_id from artifacts where artifact_id = $4))
       order by a.created_at, a.storage_id limit $5),
     marked as (
       update artifacts set deleted_at = now(), deleted_by = $6
       where artifact_id in (select a.storage_id from expired a where not exists (${DEPENDENTS})
                               and not exists (select from deployments d
                                               where d.deployment_id = a.storage_id
                                                 and d.status <> 'stopped'))
         and deleted_at is null
       returning artifact_id)
     select storage_id, storage_id in (select artifact_id from marked) as is_deleted
     from expired order by created_at, storage_id`,
    [rule.user_id, rule.kind, rule.keep_days, after?.storage_id ?? null, limit, BY_RETENTION],
  );
}

export type DeletedArtifact = Pick<ArtifactRow, "storage_id" | "kind">;

/**
 * Artifacts deleted more than `afterS` seconds ago whose bytes are still in the store, oldest
 * first. The delay lets running downloads finish.
 *
 * @param after the last artifact of the previous page.
 */
export async function listDeletedArtifacts(
  db: Queryable,
  afterS: number,
  after: DeletedArtifact | undefined,
  limit: number,
) {
  return await all<DeletedArtifact>(
    db,
    `select artifact_id as storage_id, kind from artifacts
     where deleted_at < now() - make_interval(secs => $1) and bytes_removed_at is null
       and ($2::text is null or (deleted_at, artifact_id) >
            (select deleted_at, artifact_id from artifacts where artifact_id = $2))
     order by deleted_at, artifact_id limit $3`,
    [afterS, after?.storage_id ?? null, limit],
  );
}

export async function markBytesRemoved(db: Queryable, storageId: string): Promise<void> {
  await execute(
    db,
    "update artifacts set bytes_removed_at = now() where artifact_id = $1 and deleted_at is not null",
    [storageId],
  );
}
