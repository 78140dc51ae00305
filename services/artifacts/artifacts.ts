import type { TenantScope } from "../../core/accounts/principal";
import type { ArtifactType } from "../../core/artifacts/artifacts";
import type { SourceArtifact } from "../../core/artifacts/manifest";
import type { DeploymentManifest, Manifest } from "../../core/artifacts/manifest-schema";
import { listPage, type Page, Where, type WithPosition } from "../../platform/postgres/pages";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { contains, either, startsWith } from "../../platform/postgres/text-search";

export interface ArtifactRow {
  /** As its tenant knows it; unique within the tenant only. */
  artifact_id: string;
  /** Made by the server, and unique over all tenants: the key of its row, its folder, its deployment. */
  storage_id: string;
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

/**
 * Artifacts with both of their ids, in place of the table: there `artifact_id` is the storage id, and
 * `given_id` the id that a worker chose, if it chose one.
 */
export const COLUMNS = `coalesce(given_id, artifact_id) as artifact_id, artifact_id as storage_id, user_id,
  job_id, attempt, artifact_type, kind, uri, created_by, created_at, source_jobs, source_artifacts,
  size_bytes, manifest, name, registered_at, deleted_at, shown_bytes`;

export const ARTIFACTS = `(select ${COLUMNS} from artifacts)`;

/**
 * Those that have one of these ids. A URI in our store names the storage id, so that either will do: no two
 * artifacts of one tenant share any.
 */
export const hasId = (ids: string): string =>
  `(artifact_id = any(${ids}) or storage_id = any(${ids}))`;

export interface Reservation {
  artifactId: string;
  storageId: string;
  userId: string;
  jobId: string;
  attempt: number;
  artifactType: ArtifactType;
  kind: string;
  uri: string;
  createdBy: string;
}

/** ReportedFields an artifact id for a job's winning attempt; false when another job of its tenant owns it. */
export async function reserveArtifact(db: Queryable, given: Reservation): Promise<boolean> {
  const inserted = await execute(
    db,
    `insert into artifacts (artifact_id, given_id, user_id, job_id, attempt, artifact_type, kind, uri,
                            created_by)
     values ($1, nullif($2, $1), $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
    [
      given.storageId,
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

/**
 * Another job may have the id that this one's artifact was to have. The row keeps the folder until that is empty:
 * it gets an id that no worker can choose.
 */
export async function releaseArtifactId(db: Queryable, jobId: string): Promise<void> {
  await execute(
    db,
    `update artifacts set given_id = 'released:' || job_id
     where job_id = $1 and registered_at is null`,
    [jobId],
  );
}

/** So many tenants at most are named to an admin whose id is several tenants'. */
export const MAX_OWNERS = 10;

/** At most one of each tenant. */
export async function findArtifacts(
  db: Queryable,
  id: string,
  tenantScope: TenantScope,
): Promise<ArtifactRow[]> {
  return await all<ArtifactRow>(
    db,
    `select * from ${ARTIFACTS} a
     where ${hasId("array[$1::text]")} and registered_at is not null
       and ($2::text is null or user_id = $2)
     order by user_id limit ${MAX_OWNERS}`,
    [id, tenantScope],
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
  /** The beginning of its id, or what is in its name. */
  text?: string | undefined;
  /** True: deleted ones too. */
  deleted?: boolean | undefined;
}

/** One page of registered artifacts, newest first. */
export async function listArtifacts(
  db: Queryable,
  tenantScope: TenantScope,
  filter: ArtifactFilter,
  page: Page,
): Promise<WithPosition<ArtifactRow>[]> {
  const where = new Where()
    .and("registered_at is not null")
    .seenBy(tenantScope)
    .also(filter.type, (type) => `artifact_type = ${type}`)
    .also(filter.kinds, (kinds) => `kind = any(${kinds})`)
    .also(filter.jobId, (job) => `job_id = ${job}`)
    .also(filter.source, (source) => `source_artifacts @> array[${source}]`)
    .also(filter.name, (name) => `name = ${name}`)
    .also(filter.text, (text) => either(startsWith("artifact_id", text), contains("name", text)))
    .also(filter.createdAfter, (time) => `created_at > ${time}`)
    .also(filter.createdBefore, (time) => `created_at < ${time}`)
    .and(filter.deleted ? "true" : "deleted_at is null");
  return await listPage<ArtifactRow>(db, {
    select: "*",
    from: `${ARTIFACTS} a`,
    order: ["created_at", "storage_id"],
    where,
    page,
    sizedBy: "shown_bytes",
  });
}

export async function listJobArtifacts(
  db: Queryable,
  jobId: string,
  tenantScope: TenantScope,
): Promise<ArtifactRow[]> {
  return await all<ArtifactRow>(
    db,
    `select * from ${ARTIFACTS} a where job_id = $1 and registered_at is not null
       and ($2::text is null or user_id = $2) order by artifact_id`,
    [jobId, tenantScope],
  );
}

/** The manifest of an artifact that is registered, or was. */
export async function findManifest(
  db: Queryable,
  storageId: string,
): Promise<{ manifest: Manifest; deleted_at: Date | null } | undefined> {
  return await maybeOne<{ manifest: Manifest; deleted_at: Date | null }>(
    db,
    "select manifest, deleted_at from artifacts where artifact_id = $1 and manifest is not null",
    [storageId],
  );
}

export async function findDeploymentManifest(
  db: Queryable,
  storageId: string,
): Promise<DeploymentManifest | undefined> {
  const row = await maybeOne<{ manifest: DeploymentManifest }>(
    db,
    "select manifest from artifacts where artifact_id = $1 and deleted_at is null",
    [storageId],
  );
  return row?.manifest;
}

/** In place of the one that it was registered with. */
export async function replaceManifest(
  db: Queryable,
  storageId: string,
  manifest: Manifest,
): Promise<void> {
  await execute(
    db,
    "update artifacts set manifest = $2 where artifact_id = $1 and deleted_at is null",
    [storageId, manifest],
  );
}

/** Of these ids, those that are this tenant's artifacts or were, in their order: what something was made from. */
export async function findSources(
  db: Queryable,
  userId: string,
  ids: string[],
): Promise<SourceArtifact[]> {
  if (ids.length === 0) return [];
  return await all<SourceArtifact & Record<string, unknown>>(
    db,
    `select artifact_id as "artifactId", artifact_type = 'dataset' as "isDataset",
            case when artifact_type = 'checkpoint' then (array_agg(manifest))[1] end as manifest
     from unnest($2::text[]) with ordinality as named (id, place)
     join ${ARTIFACTS} a on a.artifact_id = named.id or a.storage_id = named.id
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
  if (ids.length === 0) return [];
  return await all<ArtifactRow>(
    db,
    `select * from ${ARTIFACTS} a
     where user_id = $1 and ${hasId("$2")} and registered_at is not null and deleted_at is null`,
    [userId, ids],
  );
}
