import { isOlder } from "../../platform/postgres/clock";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ARTIFACTS, type ArtifactRow } from "./artifacts";

/** What would lose its source with an artifact. */
export interface Dependent {
  type: "artifact" | "job" | "pipeline";
  id: string;
}

const MAX_DEPENDENTS = 20;

/** How a JSON text names artifact `a`. */
const NAMES = `array['"' || a.artifact_id || '"', '/' || a.artifact_id || '/', '/' || a.artifact_id || '"',
                     '"' || a.storage_id || '"', '/' || a.storage_id || '/', '/' || a.storage_id || '"']`;

/**
 * Of artifact `a`: what was made from it and is still there, and what is under way and names it. A job
 * names things in more places than one, so that its whole text is looked at: for either id as a value, and
 * as a folder of a URI.
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

/** The artifact's entry, locked: nobody deletes it meanwhile. */
export async function lockArtifact(
  db: Queryable,
  storageId: string,
): Promise<ArtifactRow | undefined> {
  return await maybeOne<ArtifactRow>(
    db,
    `select * from ${ARTIFACTS} a where storage_id = $1 and registered_at is not null for update`,
    [storageId],
  );
}

export async function listDependents(db: Queryable, storageId: string): Promise<Dependent[]> {
  return await all<Dependent>(
    db,
    `select d.type, d.id from ${ARTIFACTS} a cross join lateral (${DEPENDENTS}) d
     where a.storage_id = $1 limit ${MAX_DEPENDENTS}`,
    [storageId],
  );
}

/** Leaves a tombstone; one that is there already stays as it is. */
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
  if (!row) throw new Error(`artifact ${storageId} is gone from the registry`);
  return row.deleted_at;
}

/** Who deleted it, where nobody did. */
const BY_RETENTION = "retention";

export interface TenantRule {
  user_id: string;
  kind: string;
  keep_days: number;
}

export async function listTenantRules(db: Queryable): Promise<TenantRule[]> {
  return await all<TenantRule>(db, "select user_id, kind, keep_days from retention_rules");
}

/** An artifact that is older than its rule keeps. */
export interface Expired {
  storage_id: string;
  /** False: something depends on it. */
  is_deleted: boolean;
}

/**
 * Looks at the next `limit` artifacts that a rule gives up, the oldest first, and buries those that nothing
 * depends on.
 *
 * @param after only those that come after this one.
 */
export async function markExpiredDeleted(
  db: Queryable,
  rule: TenantRule,
  after: Expired | undefined,
  limit: number,
): Promise<Expired[]> {
  return await all<Expired>(
    db,
    `with expired as (
       select a.artifact_id, a.storage_id, a.created_at, a.user_id, a.job_id from ${ARTIFACTS} a
       where a.user_id = $1 and a.kind = $2 and a.registered_at is not null and a.deleted_at is null
         and ${isOlder("a.created_at", "make_interval(days => $3)")}
         and ($4::text is null or (a.created_at, a.storage_id) >
              (select created_at, artifact_id from artifacts where artifact_id = $4))
       order by a.created_at, a.storage_id limit $5),
     buried as (
       update artifacts set deleted_at = now(), deleted_by = $6
       where artifact_id in (select a.storage_id from expired a where not exists (${DEPENDENTS})
                               and not exists (select from deployments d
                                               where d.deployment_id = a.storage_id
                                                 and d.status <> 'stopped'))
         and deleted_at is null
       returning artifact_id)
     select storage_id, storage_id in (select artifact_id from buried) as is_deleted
     from expired order by created_at, storage_id`,
    [rule.user_id, rule.kind, rule.keep_days, after?.storage_id ?? null, limit, BY_RETENTION],
  );
}

export interface DeletedArtifact {
  storage_id: string;
  kind: string;
}

/**
 * Tombstones of more than `afterS` seconds ago whose bytes are still in the store, the oldest first: whoever
 * reads them when they are deleted may read on.
 *
 * @param after only those that come after this one.
 */
export async function listDeletedArtifacts(
  db: Queryable,
  afterS: number,
  after: DeletedArtifact | undefined,
  limit: number,
): Promise<DeletedArtifact[]> {
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

export async function noteBytesRemoved(db: Queryable, storageId: string): Promise<void> {
  await execute(
    db,
    "update artifacts set bytes_removed_at = now() where artifact_id = $1 and deleted_at is not null",
    [storageId],
  );
}
