import { findNamed, prefixOfKind } from "../core/artifacts/artifacts";
import { storeKeyOf } from "../core/artifacts/dataset-uri";
import { isPlainPath } from "../core/artifacts/plain-path";
import { idsIn, referencesOf } from "../core/artifacts/references";
import { ConnectionRefused } from "../platform/net/refused";
import { type ObjectStore, StoreAway } from "../platform/store/object-store";
import { ownStoreOf } from "../platform/store/open-store";
import type { TenantPlace } from "../platform/store/tenant-stores";
import { type ArtifactRow, findOwnArtifacts } from "../services/artifacts/artifacts";
import type { Context } from "../services/context";
import { findOwnDeployments, type OwnDeployment } from "../services/deployments/deployments";
import type { Lease } from "../services/jobs/leases";

/** References that may name a deployment, which is spoken to and not read. */
const TEACHERS = ["teacher", "judge"];

/** A file of one of the stores. */
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
  /** Of one that is withheld: why, for its tenant. */
  reason?: string;
  /** Of one that is withheld: that may pass. */
  retryable?: true;
  files?: InputFile[];
  uri?: string;
  /** Of a deployment: where it is asked, and with what. */
  server?: { url: string; token: string | null };
}

export type Naming = Pick<Lease, "user_id" | "payload" | "params">;

/**
 * What a job reads, as far as the control plane knows it; only what is its tenant's.
 *
 * @param only of this param: the others need not be looked for.
 */
export async function resolveInputs(ctx: Context, job: Naming, only?: string): Promise<Input[]> {
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
      const artifact = findNamed(own, artifactId);
      if (TEACHERS.includes(param)) {
        return teacher(
          { param, value },
          deployments.find(({ deployment_id }) => deployment_id === artifact?.storage_id),
        );
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

/** A deployment is asked where it runs now; one that runs nowhere may do so again. */
function teacher(
  named: Pick<Input, "param" | "value">,
  deployment: OwnDeployment | undefined,
): Input | undefined {
  if (!deployment) return undefined;
  const { status, server } = deployment;
  const id = named.value;
  if (status !== "active") {
    return { ...named, withheld: true, reason: `deployment ${id} is ${status}` };
  }
  if (server !== null) return { ...named, server };
  const reason = `deployment ${id} runs nowhere right now`;
  return { ...named, withheld: true, reason, retryable: true };
}

/** A URI in our own store: a file, or the folder of an artifact. */
async function fromStore(ctx: Context, uri: StoreUri): Promise<Input> {
  const { param, value, artifact } = uri;
  const key = artifact ? inItsFolder(uri.key, artifact) : uri.key;
  const sizeBytes = await ctx.store.sizeOf(key);
  if (sizeBytes !== undefined) {
    const path = key.split("/").at(-1) ?? key;
    return { param, value, files: [{ path, store: ctx.store, key, sizeBytes, sha256: null }] };
  }
  const isFolder = artifact && key === prefixOfKind(artifact.kind, artifact.storage_id);
  return isFolder
    ? { param, value, ...contentOf(ctx, artifact) }
    : { param, value, withheld: true };
}

/** The id in a URI may be the one that the artifact's worker chose, which no folder has. */
const inItsFolder = (key: string, { storage_id: folder }: ArtifactRow): string =>
  key.split("/").with(2, folder).join("/");

interface StoreUri {
  param: string;
  value: string;
  key: string;
  /** Whose folder it is in. */
  artifact: ArtifactRow | undefined;
}

const OTHER_STORES = /^(s3|spaces):\/\//;

/** The files that an artifact's manifest names; where that has none, where its maker put them. */
function contentOf(
  { store }: Context,
  { storage_id: id, kind, uri, manifest }: ArtifactRow,
): Partial<Input> {
  const { files } = manifest;
  // Its maker's word for where it lies counts for stores that are not ours: there the worker's own
  // credentials decide. In ours an artifact has its own folder, and no other's.
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
 * A URI in a bucket that its tenant has given us the key of; nothing is known of any other. A worker must
 * not wait for a bucket that is not ours to mend, so what is wrong with it fails the attempt.
 */
async function fromTenantStore(ctx: Context, userId: string, uri: string): Promise<Partial<Input>> {
  try {
    const place = ctx.tenantStores.find(userId, uri);
    if (!place) return {};
    const files = await filesAt(place);
    return files.length > 0 ? { files } : { withheld: true, reason: `${uri} does not exist` };
  } catch (error) {
    if (error instanceof ConnectionRefused) {
      return { withheld: true, reason: `${uri} can't be read: ${error.message}` };
    }
    if (!(error instanceof StoreAway)) throw error;
    const isRefused = error.status !== undefined && error.status < 500;
    const reason = `${uri} can't be read: ${error.message}`;
    return { withheld: true, reason, ...(isRefused ? {} : { retryable: true }) };
  }
}

async function filesAt({ store, key }: TenantPlace): Promise<InputFile[]> {
  if (!key.endsWith("/")) {
    const sizeBytes = await store.sizeOf(key);
    const path = key.split("/").at(-1) ?? key;
    return sizeBytes === undefined ? [] : [{ path, store, key, sizeBytes, sha256: null }];
  }
  const found = await store.list(key);
  return found
    .filter(({ path }) => isPlainPath(path))
    .map(({ path, sizeBytes }) => ({ path, store, key: `${key}${path}`, sizeBytes, sha256: null }));
}
