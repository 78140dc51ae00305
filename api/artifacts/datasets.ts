import { Readable } from "node:stream";
import { z } from "zod";
import { RAW_DATASET } from "../../core/artifacts/artifact-form";
import { prefixOfKind, storeUri } from "../../core/artifacts/artifacts";
import { buildUploadManifest } from "../../core/artifacts/manifest";
import { type ForgeError, InvalidRequest } from "../../core/errors";
import { label } from "../../core/label";
import { idempotencyHeader } from "../../platform/http/openapi";
import { type AnyCall, mediaTypeOf, type Route, route } from "../../platform/http/route";
import { keptOpen } from "../../platform/http/sent-body";
import { releasingBuffers } from "../../platform/http/streamed-memory";
import { newId } from "../../platform/ids";
import { readClock } from "../../platform/postgres/clock";
import { withinReserve } from "../../platform/store/reserve";
import { DATASET_CONTENT_TYPES, type IngestedFile, ingest } from "../../platform/tables/ingest";
import { createOnce } from "../../services/accounts/idempotency-keys";
import { quotaExceeded } from "../../services/accounts/quota-exceeded";
import { requireRoomForBytes } from "../../services/accounts/require-room";
import {
  deleteAbandonedUpload,
  isUnregistered,
  registerDataset,
  reserveDataset,
} from "../../services/artifacts/dataset-uploads";
import { putManifestFile } from "../../services/artifacts/manifest-file";
import type { Context } from "../../services/context";
import { artifactFields, presentArtifact } from "./present-artifact";

const CHECKSUM = /^[0-9a-fA-F]{64}$/;

const datasetSchema = z
  .object({
    ...artifactFields,
    dataset_id: z.string(),
    dataset_uri: z.string(),
    num_rows: z.int(),
    schema: z.object({ columns: z.array(z.object({ name: z.string(), dtype: z.string() })) }),
  })
  .meta({ id: "Dataset" });

export function datasetRoute(ctx: Context): Route {
  return route({
    method: "POST",
    paths: ["/api/datasets"],
    scope: "user",
    outsideConnectionQueue: true,
    operationId: "uploadDataset",
    tag: "Artifacts",
    summary: "Upload a dataset",
    description:
      "The body is the file, of any size. It is stored, then read: the answer has the counted rows and " +
      "the columns; if a row is invalid, the error has its number.",
    query: z.strictObject({ name: label(256).optional() }),
    headers: {
      "X-Checksum-Sha256": z
        .string()
        .regex(CHECKSUM, "must be 64 hexadecimal digits")
        .optional()
        .describe("SHA-256 of the body, in hex"),
      ...idempotencyHeader,
    },
    stream: { contentTypes: DATASET_CONTENT_TYPES, description: "parquet, JSON lines, or CSV" },
    responses: { 201: { description: "the dataset", schema: datasetSchema } },
    errorCodes: {
      400: ["checksum_mismatch"],
      409: ["quota_exceeded"],
      413: ["quota_exceeded"],
      429: ["quota_exceeded"],
    },
    async handle(call) {
      const { request, query, headers, principal } = call;
      const { userId: tenant, keyName: createdBy } = principal;
      const { body } = request;
      if (!(body instanceof Readable))
        throw new InvalidRequest("send the file as the body", "body");
      // Counts this request against the tenant's cap of open uploads until the request ends.
      const options = { as: "open_uploads" } as const;
      const { signal } = ctx.waitingRequests.register(request, principal, call.reply, options);
      await requireRoomForBytes(ctx.pool, ctx.config.limits.caps, tenant);
      const artifactId = newId(RAW_DATASET.idPrefix);
      const prefix = prefixOfKind(RAW_DATASET.kind, artifactId);
      const uri = storeUri(prefix);
      await reserveDataset(ctx.pool, { storageId: artifactId, userId: tenant, uri, createdBy });
      const limit = ctx.config.store.reserveBytes;
      try {
        const file = await ingest(ctx.store, ctx.tables, {
          tenant,
          prefix,
          contentType: mediaTypeOf(request),
          body: withinReserve(ctx.store, limit, releasingBuffers(keptOpen(body)), noRoom(limit)),
          checksum: headers["X-Checksum-Sha256"],
          signal,
        });
        return await register(ctx, call, { artifactId, prefix, name: query.name ?? null, file });
      } finally {
        // If the removal fails, the sweeper removes the upload later.
        await removeUnregistered(ctx, artifactId, prefix).catch(() => undefined);
      }
    },
  });
}

/** Creates the error for an upload that would use the store's reserve of free space. */
const noRoom =
  (limit: number) =>
  (free: number): ForgeError => {
    const what = `the store has ${free} bytes left, and reserves ${limit} for bills, manifests and logs`;
    const variable = "FORGE_STORE_RESERVE_BYTES";
    return quotaExceeded(413, what, { cap: "store_reserve", variable, limit, used: free });
  };

interface NewDataset {
  artifactId: string;
  prefix: string;
  name: string | null;
  file: IngestedFile;
}

/**
 * Removes the files of an upload that failed or repeats an earlier one. First checks that the
 * upload is not registered: the commit may have succeeded although its response was lost.
 */
async function removeUnregistered(ctx: Context, storageId: string, prefix: string): Promise<void> {
  if (!(await isUnregistered(ctx.pool, storageId))) return;
  await ctx.store.removeAll(prefix);
  await deleteAbandonedUpload(ctx.pool, storageId);
}

/** Writes the manifest, then the registry entry. */
async function register(
  ctx: Context,
  call: AnyCall,
  { artifactId, prefix, name, file }: NewDataset,
): Promise<unknown> {
  const { userId, keyName: createdBy } = call.principal;
  const createdAt = await readClock(ctx.pool);
  const manifest = buildUploadManifest({ artifactId, userId, createdBy, createdAt, name, file });
  await putManifestFile(ctx, prefix, manifest);
  const { answer } = await createOnce(ctx, call, {
    content: { name, sha256: file.sha256 },
    async create(db) {
      const { sizeBytes } = file;
      const row = await registerDataset(db, { storageId: artifactId, name, sizeBytes, manifest });
      return {
        ...presentArtifact(row),
        dataset_id: artifactId,
        dataset_uri: storeUri(`${prefix}${file.path}`),
        num_rows: file.numRows,
        schema: { columns: file.columns },
      };
    },
  });
  return answer;
}
