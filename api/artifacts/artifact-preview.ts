import { once } from "node:events";
import { z } from "zod";
import { ForgeError, Unavailable } from "../../core/errors";
import { type Route, route } from "../../platform/http/route";
import { tableFilesOf } from "../../platform/tables/stored-table";
import { tableFormat } from "../../platform/tables/table-format";
import { Unreadable } from "../../platform/tables/unreadable";
import type { ArtifactRow } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import { tenantQuery } from "../accounts/tenant-filter";
import { requireBytes, requireFile } from "./find-artifact";

const extreme = z
  .union([z.string(), z.number(), z.boolean()])
  .nullable()
  .describe(
    "null for types without an order, and if the column has no values; text is cut to 256 " +
      "characters, or 16 in very wide tables",
  );
const length = z.number().nullable().optional().describe("length of strings, in characters");

const columnSchema = z
  .object({
    name: z.string(),
    dtype: z.string().describe("as in a manifest's schema: int64, double, string, bool, list, …"),
    null_count: z.int(),
    min: extreme,
    max: extreme,
    mean: z.number().nullable().describe("mean of the finite numbers; for bool, the share of true"),
    stddev: z.number().nullable().describe("sample standard deviation of the finite numbers"),
    approx_distinct: z
      .int()
      .nullable()
      .describe("estimate over all rows (HyperLogLog), often about 10 % off, at most 25 %"),
    min_length: length,
    max_length: length,
    mean_length: length,
  })
  .meta({ id: "ColumnStatistics" });

const previewSchema = z
  .object({
    artifact_id: z.string(),
    path: z.string(),
    num_rows: z.int(),
    columns: z.array(columnSchema),
    rows: z
      .array(z.record(z.string(), z.unknown()))
      .describe(
        "the first 50 rows, by column name. Integers beyond 2^53 are strings, NaN and infinities are null, " +
          'binary values are {"bytes": n}; texts over 2,000 characters are cut and end with "… [cut]"',
      ),
    truncated: z.boolean().describe("true: rows are left out to keep the answer below 1 MiB"),
  })
  .meta({ id: "TablePreview" });

const previewQuery = z.strictObject({
  path: z
    .string()
    .min(1)
    .max(1024)
    .optional()
    .describe("path of one of the artifact's files; by default the artifact's table"),
  ...tenantQuery,
});

export function artifactPreviewRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/artifacts/:artifact_id/preview"],
    scope: "user",
    outsideConnectionQueue: true,
    operationId: "previewArtifact",
    tag: "Artifacts",
    summary: "Preview a table: first rows and column statistics",
    description: "For parquet, JSON lines and CSV files. The statistics cover all rows.",
    query: previewQuery,
    responses: { 200: { description: "the preview", schema: previewSchema } },
    errorCodes: {
      400: ["ambiguous_id"],
      404: ["artifact_not_found", "file_not_found"],
      410: ["artifact_deleted"],
      422: ["preview_failed", "preview_too_large"],
    },
    async handle(call) {
      const { principal, query, request, reply } = call;
      const artifact = await requireBytes(ctx, call);
      const file = await requireFile(ctx, artifact, query.path ?? mainTableOf(artifact));
      const format = tableFormat(file.path);
      if (!format) throw new Unreadable("only .parquet, .jsonl and .csv files have a preview");
      const { artifact_id: artifactId, storage_id: storageId, user_id: tenant } = artifact;
      const { signal } = ctx.waitingRequests.register(request, principal, reply);
      const preview = await Promise.race([
        ctx.tables.preview({ ...file, tenant, storageId, format }),
        rejectOnAbort(signal),
      ]);
      return { artifact_id: artifactId, path: file.path, ...preview };
    },
  });
}

function mainTableOf(artifact: ArtifactRow): string {
  const [file] = tableFilesOf(artifact.manifest.files);
  if (file) return file.path;
  const message = `artifact "${artifact.artifact_id}" has no table: no .parquet, .jsonl or .csv file`;
  throw new ForgeError(404, "file_not_found", message, "path");
}

/** Rejects when the client disconnects, its key is revoked, or the server stops. */
async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, "abort");
  throw new Unavailable("the request was aborted; try again shortly");
}
