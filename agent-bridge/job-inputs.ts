import { z } from "zod";
import { NotFound } from "../core/errors";
import { checkpointPrefix } from "../core/jobs/attempt-files";
import { sendObject } from "../platform/http/byte-range";
import { type Route, route } from "../platform/http/route";
import type { Context } from "../services/context";
import { findCheckpointBefore, type Lease } from "../services/jobs/leases";
import { LEASE_REFUSALS, leaseHeaders, leaseQuery, requireLease } from "./require-lease";
import { type InputFile, type JobReferences, resolveInputs } from "./resolve-inputs";

const fileSchema = z.object({
  path: z.string(),
  url: z.string().describe("where to read the file: a path of this API, or a full URL"),
  fallback_url: z
    .string()
    .optional()
    .describe(
      "a path of this API for the same file; present only if `url` is a full URL, which expires",
    ),
  size_bytes: z.int(),
  sha256: z.string().nullable(),
});

export const inputSchema = z
  .object({
    param: z.string(),
    value: z.string(),
    withheld: z
      .boolean()
      .optional()
      .describe("true: the input is not available; the worker must fail the attempt"),
    reason: z
      .string()
      .optional()
      .describe(
        "why the input is withheld; absent: the tenant has no such input, or Forge has no files of it",
      ),
    retryable: z.boolean().optional().describe("true: the reason may be temporary"),
    files: z
      .array(fileSchema)
      .optional()
      .describe("the input's files, if the control plane has them"),
    uri: z.string().optional().describe("where the files are, if not in the control plane"),
    inference_url: z.string().optional().describe("URL of the deployment, if the input is one"),
    inference_token: z.string().optional().describe("bearer token for `inference_url`"),
  })
  .meta({ id: "JobInput" });

export const resumeSchema = fileSchema.omit({ path: true }).extend({
  name: z.string(),
  attempt: z.int().describe("the attempt that uploaded the checkpoint"),
});

const pathOf = (jobId: string, param: string, path: string): string =>
  `/worker/jobs/${jobId}/inputs/${param}/${path.split("/").map(encodeURIComponent).join("/")}`;

/** Where a worker reads an object: in the store if the store signs URLs, else through this API. */
async function urlsOf(
  { store: own, config }: Context,
  { store, key }: Pick<InputFile, "store" | "key">,
  path: string,
): Promise<{ url: string; fallback_url?: string }> {
  // A tenant's bucket is read through this API: the server can reach it, but a worker may be unable
  // to.
  if (store !== own || !store.signDownload || !config.store.signsUrls) return { url: path };
  return { url: await store.signDownload(key), fallback_url: path };
}

/** The inputs as a worker receives them: with URLs instead of object keys. */
export async function presentInputs(
  ctx: Context,
  job: JobReferences & Pick<Lease, "job_id">,
): Promise<z.infer<typeof inputSchema>[]> {
  const inputs = await resolveInputs(ctx, job);
  return await Promise.all(
    inputs.map(async ({ files, server, ...input }) => ({
      ...input,
      ...(server ? { inference_url: server.url } : {}),
      ...(server?.token ? { inference_token: server.token } : {}),
      ...(files && { files: await presentFiles(ctx, job.job_id, input.param, files) }),
    })),
  );
}

async function presentFiles(
  ctx: Context,
  jobId: string,
  param: string,
  files: InputFile[],
): Promise<z.infer<typeof fileSchema>[]> {
  return await Promise.all(
    files.map(async ({ path, store, key, sizeBytes, sha256 }) => ({
      path,
      ...(await urlsOf(ctx, { store, key }, pathOf(jobId, param, path))),
      size_bytes: sizeBytes,
      sha256,
    })),
  );
}

/**
 * The checkpoint that this attempt resumes from. Null if there is none, or if its file is missing
 * in the store or has another size.
 */
export async function presentResume(
  ctx: Context,
  { job_id: jobId, attempt }: Pick<Lease, "job_id" | "attempt">,
): Promise<z.infer<typeof resumeSchema> | null> {
  if (attempt === 1) return null;
  const checkpoint = await findCheckpointBefore(ctx.pool, jobId, attempt);
  if (!checkpoint) return null;
  const key = `${checkpointPrefix(jobId, checkpoint.attempt)}${checkpoint.name}`;
  // If the store is down, assume that the file is there: the worker retries the download.
  const sizeBytes = await ctx.store.sizeOf(key).catch(() => checkpoint.size_bytes);
  if (sizeBytes !== checkpoint.size_bytes) return null;
  const path = pathOf(jobId, RESUME, checkpoint.name);
  return { ...checkpoint, ...(await urlsOf(ctx, { store: ctx.store, key }, path)) };
}

/** The value of `:param` in the download URL of a checkpoint that the attempt resumes from. */
const RESUME = "resume_from";

const BYTES = { "application/octet-stream": z.string().meta({ contentEncoding: "binary" }) };

export function jobInputRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/worker/jobs/:job_id/inputs/:param/*"],
    scope: "worker",
    outsideConnectionQueue: true,
    skipsRateLimit: true,
    operationId: "downloadJobInput",
    tag: "Worker protocol",
    summary: "Download an input file of a running attempt",
    description: "Serves the files that next_job listed, including `resume_from`.",
    query: leaseQuery,
    headers: {
      ...leaseHeaders,
      Range: z.string().optional().describe("bytes=a-b, bytes=a- or bytes=-n"),
    },
    responses: {
      200: { description: "the file's bytes", content: BYTES },
      206: { description: "the requested range", content: BYTES },
    },
    errorCodes: {
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
          : (await resolveInputs(ctx, lease, param))[0]?.files?.find((one) => one.path === path);
      // The path is never resolved in a file system. It is only compared with the paths that
      // next_job sent, so it can't name any other file.
      if (!file || (await file.store.sizeOf(file.key)) !== file.sizeBytes) {
        throw new NotFound("file", path, "path");
      }
      ctx.waitingRequests.register(call.request, call.principal, reply);
      reply.type("application/octet-stream");
      return sendObject(file.store, file, headers.Range, reply);
    },
  });
}

async function resumeFile(
  ctx: Context,
  lease: Lease,
  path: string,
): Promise<Pick<InputFile, "store" | "key" | "sizeBytes"> | undefined> {
  const checkpoint = await findCheckpointBefore(ctx.pool, lease.job_id, lease.attempt);
  if (checkpoint?.name !== path) return undefined;
  const key = `${checkpointPrefix(lease.job_id, checkpoint.attempt)}${path}`;
  return { store: ctx.store, key, sizeBytes: checkpoint.size_bytes };
}
