import { join } from "node:path";
import { z } from "zod";
import { prefixOfKind } from "../core/artifacts";
import { checkpointPrefix } from "../core/attempt-files";
import { ownedThingIn, storeKeyOf } from "../core/dataset-uri";
import { NotFound } from "../core/errors";
import type { Context } from "../infra/context";
import { type ArtifactRow, findOwnArtifacts } from "../infra/database/artifacts";
import { findCheckpointBefore, type Lease } from "../infra/database/leases";
import { sendObject } from "../infra/http/byte-range";
import { type Route, route } from "../infra/http/route";
import { LEASE_REFUSALS, leaseQuery, requireLease } from "./job-lease";

/** Fields of a job that may name what it reads, in its payload and its params. */
const PAYLOAD_FIELDS = ["dataset_uri", "dataset_id", "checkpoint_id", "benchmark", "teacher"];
const PARAMS_FIELDS = ["prompts", "judge"];
/** Those of them that may name a deployment, which is spoken to and not read. */
const TEACHERS = ["teacher", "judge"];

const fileSchema = z.object({
  path: z.string(),
  url: z.string().describe("where the worker reads it: a path of this API, or an address"),
  size_bytes: z.int(),
  sha256: z.string().nullable(),
});

export const inputSchema = z
  .object({
    param: z.string(),
    value: z.string(),
    withheld: z.boolean().optional().describe("true: there is no such thing for this tenant"),
    files: z.array(fileSchema).optional().describe("the bytes, where the control plane has them"),
    uri: z.string().optional().describe("where else they are"),
    inference_url: z.string().optional().describe("of a deployment"),
  })
  .meta({ id: "JobInput" });

export const resumeSchema = fileSchema.omit({ path: true }).extend({
  name: z.string(),
  attempt: z.int().describe("the attempt that left it"),
});

interface InputFile {
  path: string;
  key: string;
  sizeBytes: number;
  sha256: string | null;
}

interface Input {
  param: string;
  value: string;
  withheld?: true;
  files?: InputFile[];
  uri?: string;
  inferenceUrl?: string;
}

type Naming = Pick<Lease, "user_id" | "payload" | "params">;

/** What a job reads, as far as the control plane knows it; only what is its tenant's. */
async function inputsOf(ctx: Context, job: Naming): Promise<Input[]> {
  const named = [
    ...PAYLOAD_FIELDS.map((param) => [param, job.payload[param]]),
    ...PARAMS_FIELDS.map((param) => [param, job.params[param]]),
  ].filter((pair): pair is [string, string] => typeof pair[1] === "string");
  const root = join(ctx.config.storeDir, "artifacts");
  const ids = named
    .map(([, value]) => (value.includes("://") ? ownedThingIn(value, root) : value))
    .filter((id) => typeof id === "string");
  const own = ids.length > 0 ? await findOwnArtifacts(ctx.pool, job.user_id, ids) : [];
  const found = await Promise.all(
    named.map(async ([param, value]): Promise<Input | undefined> => {
      if (TEACHERS.includes(param)) return teacher(param, value, own);
      const key = storeKeyOf(value, root);
      if (key !== undefined) return await fromStore(ctx, { param, value, key, root, own });
      const artifact = own.find(({ artifact_id }) => artifact_id === value);
      return { param, value, ...(artifact ? contentOf(artifact) : {}) };
    }),
  );
  return found.filter((input) => input !== undefined);
}

function teacher(param: string, value: string, own: ArtifactRow[]): Input | undefined {
  const artifact = own.find(({ artifact_id }) => artifact_id === value);
  const inferenceUrl = artifact?.manifest.inference_url;
  return typeof inferenceUrl === "string" ? { param, value, inferenceUrl } : undefined;
}

/** A URI in our own store: a file, or the folder of an artifact. */
async function fromStore(
  ctx: Context,
  { param, value, key, root, own }: Omit<Input, "files"> & StoreUri,
): Promise<Input> {
  const id = ownedThingIn(value, root);
  const artifact = own.find(({ artifact_id }) => artifact_id === id);
  if (id === null || (id !== undefined && !artifact)) return { param, value, withheld: true };
  const sizeBytes = await ctx.store.sizeOf(key);
  if (sizeBytes !== undefined) {
    const path = key.split("/").at(-1) ?? key;
    return { param, value, files: [{ path, key, sizeBytes, sha256: null }] };
  }
  const isFolder = artifact && key === prefixOfKind(artifact.kind, artifact.artifact_id);
  return isFolder ? { param, value, ...contentOf(artifact) } : { param, value, withheld: true };
}

interface StoreUri {
  key: string;
  root: string;
  own: ArtifactRow[];
}

const OTHER_STORES = /^(s3|spaces):\/\//;

interface ManifestFile {
  path: string;
  size_bytes: number;
  sha256: string;
}

/** The files that an artifact's manifest names; where that has none, where its maker put them. */
function contentOf({ artifact_id: id, kind, uri, manifest }: ArtifactRow): Partial<Input> {
  const files = (manifest.files ?? []) as ManifestFile[];
  // Its maker's word for where it lies counts for stores that are not ours: there the worker's own
  // credentials decide. In ours an artifact has its own folder, and no other's.
  if (files.length === 0) return OTHER_STORES.test(uri) ? { uri } : {};
  return {
    files: files.map((file) => ({
      path: file.path,
      key: `${prefixOfKind(kind, id)}${file.path}`,
      sizeBytes: file.size_bytes,
      sha256: file.sha256,
    })),
  };
}

const urlOf = (jobId: string, param: string, path: string): string =>
  `/worker/jobs/${jobId}/inputs/${param}/${path.split("/").map(encodeURIComponent).join("/")}`;

/** The same for a worker: it learns no key of the store. */
export async function presentInputs(
  ctx: Context,
  job: Naming & Pick<Lease, "job_id">,
): Promise<z.infer<typeof inputSchema>[]> {
  const inputs = await inputsOf(ctx, job);
  return inputs.map(({ files, inferenceUrl, ...input }) => ({
    ...input,
    ...(inferenceUrl === undefined ? {} : { inference_url: inferenceUrl }),
    ...(files === undefined
      ? {}
      : {
          files: files.map(({ path, sizeBytes, sha256 }) => ({
            path,
            url: urlOf(job.job_id, input.param, path),
            size_bytes: sizeBytes,
            sha256,
          })),
        }),
  }));
}

/** The file that this attempt goes on from; null for none. */
export async function presentResume(
  ctx: Context,
  { job_id: jobId, attempt }: Pick<Lease, "job_id" | "attempt">,
): Promise<z.infer<typeof resumeSchema> | null> {
  if (attempt === 1) return null;
  const checkpoint = await findCheckpointBefore(ctx.pool, jobId, attempt);
  return checkpoint ? { ...checkpoint, url: urlOf(jobId, RESUME, checkpoint.name) } : null;
}

/** In place of a param's name: what next_job calls `resume_from`. */
const RESUME = "resume_from";

export function jobInputRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/worker/jobs/:job_id/inputs/:param/*"],
    scope: "worker",
    unlimited: true,
    operationId: "downloadJobInput",
    tag: "Worker protocol",
    summary: "Download a file that a running attempt reads",
    description: "The files are those that next_job named, `resume_from` among them.",
    query: leaseQuery,
    headers: { Range: z.string().optional().describe("bytes=a-b, bytes=a- or bytes=-n") },
    answers: {
      200: {
        description: "its bytes",
        content: { "application/octet-stream": z.string().meta({ contentEncoding: "binary" }) },
      },
      206: {
        description: "the range asked for",
        content: { "application/octet-stream": z.string().meta({ contentEncoding: "binary" }) },
      },
    },
    refusals: {
      ...LEASE_REFUSALS,
      404: [...LEASE_REFUSALS[404], "file_not_found"],
      416: ["range_not_satisfiable"],
    },
    async handle(call) {
      const { params, reply, headers } = call;
      const { param = "", "*": path = "" } = params;
      const lease = await requireLease(ctx, call);
      const file =
        param === RESUME
          ? await resumeFile(ctx, lease, path)
          : (await inputsOf(ctx, lease))
              .find((input) => input.param === param)
              ?.files?.find((one) => one.path === path);
      // Only what was named: the path is compared, never resolved.
      if (!file || (await ctx.store.sizeOf(file.key)) !== file.sizeBytes) {
        throw new NotFound("file", path, "path");
      }
      ctx.parking.park(call.request, call.principal, reply);
      reply.type("application/octet-stream");
      return sendObject(ctx.store, file, headers.Range, reply);
    },
  });
}

async function resumeFile(
  ctx: Context,
  lease: Lease,
  path: string,
): Promise<Pick<InputFile, "key" | "sizeBytes"> | undefined> {
  const checkpoint = await findCheckpointBefore(ctx.pool, lease.job_id, lease.attempt);
  if (checkpoint?.name !== path) return undefined;
  const key = `${checkpointPrefix(lease.job_id, checkpoint.attempt)}${path}`;
  return { key, sizeBytes: checkpoint.size_bytes };
}
