import { findByEitherId, prefixOfKind } from "../core/artifacts/artifacts";
import { storeKeyOf } from "../core/artifacts/dataset-uri";
import { isPlainPath } from "../core/artifacts/plain-path";
import { idsIn, referencesOf } from "../core/artifacts/source-references";
import { ConnectionRefused } from "../platform/net/refused";
import { type ObjectStore, StoreUnavailable } from "../platform/store/object-store";
import { ownStoreOf } from "../platform/store/open-store";
import type { TenantObject } from "../platform/store/tenant-stores";
import { type ArtifactRow, findOwnArtifacts } from "../services/artifacts/artifacts";
import type { Context } from "../services/context";
import { findOwnDeployments, type OwnDeployment } from "../services/deployments/deployments";
import type { Lease } from "../services/jobs/leases";

/** Parameters that may name a deployment. Jobs call a deployment instead of reading its files. */
const TEACHERS = ["teacher", "judge"];

/** A file in one of the stores. */
export interface InputFile {
  path: string;
  store: ObjectStore;
  key: string;
  sizeBytes: number;
  sha256: string | null;
}

export interface Input {
  param: string;
  value: string;
  withheld?: true;
  /** Tells the tenant why the input is withheld. */
  reason?: string;
  /** True if the withheld input may be available later. */
  retryable?: true;
  files?: InputFile[];
  uri?: string;
  /** The address and token of a deployment. */
  server?: { url: string; token: string | null };
}

export type JobReferences = Pick<Lease, "user_id" | "payload" | "params">;

/**
 * Finds the inputs to which a job's payload and parameters refer. Adds an input's files, URI or
 * server if the control plane knows them. Never returns another tenant's data.
 * @param only the name of the single parameter to resolve. By default, all are resolved.
 */
export async function resolveInputs(
  ctx: Context,
  job: JobReferences,
  only?: string,
): Promise<Input[]> {
  const store = ownStoreOf(ctx.config.store);
  const references = referencesOf(job.payload, job.params, store).filter(
    ({ param }) => only === undefined || param === only,
  );
  const ids = idsIn(references);
  const own = ids.length > 0 ? await findOwnArtifacts(ctx.pool, job.user_id, ids) : [];
  const deployed = own.filter(({ kind }) => kind === "deployment").map((one) => one.storage_id);
  const deployments =
    deployed.length > 0 ? await findOwnDeployments(ctx.pool, job.user_id, deployed) : [];
  const found = await Promise.all(
    references.map(async ({ param, value, artifactId }): Promise<Input | undefined> => {
      const artifact = findByEitherId(own, artifactId);
      if (TEACHERS.includes(param)) {
        const deployment = deployments.find((one) => one.deployment_id === artifact?.storage_id);
        return teacher({ param, value }, deployment);
      }
      const key = storeKeyOf(value, store);
      if (key !== undefined) {
        const isWithheld = artifactId === null || (artifactId !== undefined && !artifact);
        if (isWithheld) return { param, value, withheld: true };
        return await fromStore(ctx, { param, value, key, artifact });
      }
      if (OTHER_STORES.test(value)) {
        return { param, value, ...(await fromTenantStore(ctx, job.user_id, value)) };
      }
      return { param, value, ...(artifact ? contentOf(ctx, artifact) : {}) };
    }),
  );
  return found.filter((input) => input !== undefined);
}

/**
 * The parameters `teacher` and `judge` may name a deployment. Returns this deployment's server;
 * undefined if the parameter names no deployment. Withholds the input if the deployment is not
 * active or has no running server. If only the server is missing, the worker reports a retryable
 * failure, because a server may start later.
 */
function teacher(
  reference: Pick<Input, "param" | "value">,
  deployment: OwnDeployment | undefined,
): Input | undefined {
  if (!deployment) return undefined;
  const { status, server } = deployment;
  const id = reference.value;
  if (status !== "active") {
    return { ...reference, withheld: true, reason: `deployment ${id} is ${status}` };
  }
  if (server !== null) return { ...reference, server };
  const reason = `deployment ${id} has no running server`;
  return { ...reference, withheld: true, reason, retryable: true };
}

/** Resolves a URI of a file or of an artifact's folder in Forge's own store. */
async function fromStore(ctx: Context, uri: StoreUri): Promise<Input> {
  const { param, value, artifact } = uri;
  const key = artifact ? withStorageId(uri.key, artifact) : uri.key;
  const files = await filesWithKey(ctx.store, key);
  if (files.length > 0) return { param, value, files };
  const isFolder = artifact && key === prefixOfKind(artifact.kind, artifact.storage_id);
  return { param, value, ...(isFolder ? contentOf(ctx, artifact) : { withheld: true }) };
}

/**
 * Replaces the name of the artifact's folder in a storage key by the artifact's storage id. In the
 * given key, the folder may have the id that a worker chose.
 */
const withStorageId = (key: string, { storage_id: folder }: ArtifactRow): string =>
  key.split("/").with(2, folder).join("/");

interface StoreUri extends Pick<Input, "param" | "value"> {
  key: string;
  /** The artifact whose folder contains the file. */
  artifact: ArtifactRow | undefined;
}

const OTHER_STORES = /^(s3|spaces):\/\//;

/**
 * Returns the files that an artifact's manifest lists. If it lists none, returns the URI that the
 * worker reported.
 */
function contentOf(
  { store }: Context,
  { storage_id: id, kind, uri, manifest }: ArtifactRow,
): Partial<Input> {
  const { files } = manifest;
  // Return a reported URI only if it is in another store, which the worker reads with its own
  // credentials. In Forge's store, an artifact has no files except those in its folder.
  if (files.length === 0) return OTHER_STORES.test(uri) ? { uri } : {};
  return {
    files: files.map((file) => ({
      path: file.path,
      store,
      key: `${prefixOfKind(kind, id)}${file.path}`,
      sizeBytes: file.size_bytes,
      sha256: file.sha256,
    })),
  };
}

/**
 * Resolves a URI in a bucket for which the tenant gave Forge credentials. Returns `{}` for any
 * other bucket. If the bucket can't be read, withholds the input, and the worker fails the attempt.
 * An unreadable bucket must not cause an error response: the worker would repeat its request until
 * the bucket works, and Forge can't repair a tenant's bucket.
 */
async function fromTenantStore(ctx: Context, userId: string, uri: string): Promise<Partial<Input>> {
  try {
    const location = ctx.tenantStores.find(userId, uri);
    if (!location) return {};
    const files = await filesAt(location);
    return files.length > 0 ? { files } : { withheld: true, reason: `${uri} does not exist` };
  } catch (error) {
    const isRefused = error instanceof ConnectionRefused;
    if (!isRefused && !(error instanceof StoreUnavailable)) throw error;
    const reason = `${uri} can't be read: ${error.message}`;
    const isFinal = isRefused || (error.status !== undefined && error.status < 500);
    return { withheld: true, reason, ...(isFinal ? {} : { retryable: true }) };
  }
}

/** Returns a list with the file that has this key; an empty list if there is none. */
async function filesWithKey(store: ObjectStore, key: string): Promise<InputFile[]> {
  const sizeBytes = await store.sizeOf(key);
  const path = key.split("/").at(-1) ?? key;
  return sizeBytes === undefined ? [] : [{ path, store, key, sizeBytes, sha256: null }];
}

async function filesAt({ store, key }: TenantObject): Promise<InputFile[]> {
  if (!key.endsWith("/")) return await filesWithKey(store, key);
  const found = await store.list(key);
  return found
    .filter(({ path }) => isPlainPath(path))
    .map(({ path, sizeBytes }) => ({ path, store, key: `${key}${path}`, sizeBytes, sha256: null }));
}
