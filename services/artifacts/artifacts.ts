import type { TenantScope } from "../../core/accounts/principal";
import type { ArtifactType } from "../../core/artifacts/artifact-form";
import type { SourceArtifact } from "../../core/artifacts/manifest";
import type { DeploymentManifest, Manifest } from "../../core/artifacts/manifest-schema";
import { listPage, type Page, Where, type WithPosition } from "../../platform/postgres/pages";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { contains, either, startsWith } from "../../platform/postgres/text-search";

export interface ArtifactRow {
  /** The id that the tenant uses; unique within the tenant only. */
  artifact_id: string;
  /** Made by the server and unique over all tenants; identifies the row, the folder and the deployment. */
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
  /** Not null: only registered artifacts are read, and those have a manifest. */
  manifest: Manifest;
  /** The owner's name for an uploaded dataset. */
  name: string | null;
  /** If set, the artifact's bytes are removed, or will be. */
  deleted_at: Date | null;
}

/**
 * SQL: the columns of an `ArtifactRow`. In the table, `artifact_id` is the storage id, and `given_id` the id that a worker
 * chose, if any.
 */
export const COLUMNS = `coalesce(given_id, artifact_id) as artifact_id, artifact_id as storage_id, user_id,
  job_id, attempt, artifact_type, kind, uri, created_by, created_at, source_jobs, source_artifacts,
  size_bytes, manifest, name, registered_at, deleted_at, shown_bytes`;

/** SQL: a subquery to read from instead of the table `artifacts`. Its id columns have the names of `ArtifactRow`. */
export const ARTIFACTS = `(select ${COLUMNS} from artifacts)`;

/**
 * SQL: whether an artifact has one of these ids as its artifact id or as its storage id. URIs in our store contain the
 * storage id, so both are accepted. This is unambiguous: no two artifacts of a tenant share an id of either kind.
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

/**
 * Reserves an artifact id for a job's winning attempt. Returns false if another artifact of the tenant has the id, or
 * if any artifact has the storage id.
 */
export async function reserveArtifact(db: Queryable, given: Reservation): Promise<boolean> {
  const { storageId, artifactId, userId, jobId, attempt, artifactType, kind, uri, createdBy } =
    given;
  const inserted = await execute(
    db,
    `insert into artifacts (artifact_id, given_id, user_id, job_id, attempt, artifact_type, kind, uri,
                            created_by)
     values ($1, nullif($2, $1), $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
    [storageId, artifactId, userId, jobId, attempt, artifactType, kind, uri, createdBy],
  );
  return inserted === 1;
}

/**
 * Releases the id of a job's unregistered artifact for other jobs. The row gets an id that no worker can choose, and
 * stays until the sweeper has removed the artifact's files.
 */
export async function releaseArtifactId(db: Queryable, jobId: string): Promise<void> {
  await execute(
    db,
    `update artifacts set given_id = 'released:' || job_id
     where job_id = $1 and registered_at is null`,
    [jobId],
  );
}

/** The most artifacts that an admin gets for an id that several tenants use. */
export const MAX_OWNERS = 10;

/** Finds registered artifacts by artifact id or storage id: at most one per tenant. */
export async function findArtifacts(db: Queryable, id: string, tenantScope: TenantScope) {
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
  /** Lists only artifacts made from the artifact with this id. */
  source?: string | undefined;
  name?: string | undefined;
  createdAfter?: string | undefined;
  createdBefore?: string | undefined;
  /** A prefix of the artifact's id, or a part of its name. */
  text?: string | undefined;
  /** Lists deleted artifacts, too. */
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

export async function listJobArtifacts(db: Queryable, jobId: string, tenantScope: TenantScope) {
  return await all<ArtifactRow>(
    db,
    `select * from ${ARTIFACTS} a where job_id = $1 and registered_at is not null
       and ($2::text is null or user_id = $2) order by artifact_id`,
    [jobId, tenantScope],
  );
}

/** The manifest of an artifact, even of a deleted one. */
export async function findManifest(db: Queryable, storageId: string) {
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

/**
 * Replaces the manifest of a stopped deployment, unless its artifact is deleted. Does nothing if a restored database
 * lacks the stop that the manifest describes: the deployment is then not `stopped`, or was stopped again and has
 * another bill.
 */
export async function replaceStoppedManifest(
  db: Queryable,
  deploymentId: string,
  manifest: DeploymentManifest,
): Promise<void> {
  await execute(
    db,
    `update artifacts set manifest = $2
     where artifact_id = $1 and deleted_at is null and exists (
       select from deployments d join billing_records b using (job_id)
       where d.deployment_id = $1 and d.status = 'stopped' and b.total_cost_usd = $3
         and (b.metrics->>'deployment_lifetime_days')::numeric = $4)`,
    [deploymentId, manifest, manifest.cost_estimate_usd, manifest.metrics.deployment_lifetime_days],
  );
}

/** The tenant's artifacts among the given ids, in the order of the ids. Includes deleted artifacts. */
export async function findSources(
  db: Queryable,
  userId: string,
  ids: string[],
): Promise<SourceArtifact[]> {
  if (ids.length === 0) return [];
  return await all<SourceArtifact>(
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

/** The tenant's registered artifacts among the given ids. Excludes deleted artifacts. */
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
