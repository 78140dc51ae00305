import { z } from "zod";
import type { Principal } from "../../core/accounts/permissions";
import { ARTIFACT_TYPES } from "../../core/artifacts/artifact-form";
import { ARTIFACT_KINDS } from "../../core/artifacts/artifacts";
import { manifestSchema } from "../../core/artifacts/manifest-schema";
import { Conflict, ForgeError } from "../../core/errors";
import { givenTime } from "../../core/timestamp";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { type Route, route } from "../../platform/http/route";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../../services/accounts/audit";
import {
  listDependents,
  lockArtifact,
  markDeleted,
} from "../../services/artifacts/artifact-deletion";
import { listArtifacts } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import { findDeployment } from "../../services/deployments/deployments";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";
import { searchQuery } from "../search-query";
import { requireArtifact } from "./find-artifact";
import { artifactSchema, presentArtifact } from "./present-artifact";

const artifactsQuery = z.strictObject({
  ...pageQuery,
  type: z.enum(ARTIFACT_TYPES).optional(),
  kind: z.array(z.enum(ARTIFACT_KINDS)).min(1).max(16).optional().describe("any of these"),
  job_id: z.string().min(1).max(128).optional().describe("artifacts of this job"),
  source: z.string().min(1).max(128).optional().describe("artifacts made from this one"),
  name: z.string().min(1).max(256).optional().describe("name of an uploaded dataset"),
  ...searchQuery("the beginning of an artifact's id, or a part of its name"),
  created_after: givenTime.optional(),
  created_before: givenTime.optional(),
  deleted: z.enum(["true", "false"]).default("false").describe("true: include deleted artifacts"),
  ...tenantQuery,
});

const NOT_FOUND = { 400: ["ambiguous_id"], 404: ["artifact_not_found"] };
const query = z.strictObject(tenantQuery);

export function artifactRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/artifacts"],
      scope: "user",
      operationId: "listArtifacts",
      tag: "Artifacts",
      summary: "List artifacts, newest first",
      sharesResult: true,
      query: artifactsQuery,
      responses: {
        200: { description: "a page of artifacts", schema: listOf("artifacts", artifactSchema) },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const tenantScope = tenantFilter(principal, query.user_id);
        const filter = {
          type: query.type,
          kinds: query.kind,
          jobId: query.job_id,
          source: query.source,
          name: query.name,
          text: query.q,
          createdAfter: query.created_after,
          createdBefore: query.created_before,
          deleted: query.deleted === "true",
        };
        const rows = await listArtifacts(ctx.pool, tenantScope, filter, page);
        return presentPage("artifacts", rows, page, (row) => row.storage_id, presentArtifact);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id"],
      scope: "user",
      operationId: "getArtifact",
      tag: "Artifacts",
      summary: "Read an artifact",
      query,
      responses: { 200: { description: "the artifact", schema: artifactSchema } },
      errorCodes: NOT_FOUND,
      handle: async (call) => presentArtifact(await requireArtifact(ctx, call)),
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/manifest"],
      scope: "user",
      operationId: "getManifest",
      tag: "Artifacts",
      summary: "Read an artifact's manifest",
      query,
      responses: { 200: { description: "the manifest", schema: manifestSchema } },
      errorCodes: NOT_FOUND,
      handle: async (call) => (await requireArtifact(ctx, call)).manifest,
    }),
    route({
      method: "DELETE",
      paths: ["/api/artifacts/:artifact_id"],
      scope: "user",
      operationId: "deleteArtifact",
      tag: "Artifacts",
      summary: "Delete an artifact's bytes",
      description:
        "The artifact's entry and manifest stay, so that the lineage of later artifacts stays complete. Refused " +
        "while something depends on the artifact: another artifact made from it, an unfinished job that names " +
        "it, or a live deployment.",
      query,
      responses: { 200: { description: "the deleted artifact's entry", schema: artifactSchema } },
      errorCodes: { ...NOT_FOUND, 409: ["artifact_in_use", "deployment_active"] },
      async handle(call) {
        const { artifact_id: id, storage_id: storageId } = await requireArtifact(ctx, call);
        await transaction(ctx.pool, (db) => deleteArtifact(db, storageId, call.principal));
        call.request.log.info({ artifact_id: id, storage_id: storageId }, "artifact deleted");
        return presentArtifact(await requireArtifact(ctx, call));
      },
    }),
  ];
}

/** Does nothing if the artifact is already deleted. */
async function deleteArtifact(
  db: Queryable,
  storageId: string,
  principal: Principal,
): Promise<void> {
  const artifact = await lockArtifact(db, storageId);
  if (!artifact || artifact.deleted_at !== null) return;
  const { artifact_id: id, kind, user_id: userId } = artifact;
  const deployment = kind === "deployment" ? await findDeployment(db, storageId) : undefined;
  if (deployment && deployment.status !== "stopped") {
    const message = `deployment "${id}" is ${deployment.status}; stop it first`;
    throw new Conflict("deployment_active", message);
  }
  const dependents = await listDependents(db, storageId);
  if (dependents.length > 0) {
    const named = dependents.map((dependent) => `${dependent.type} ${dependent.id}`).join(", ");
    const message = `the artifact is used by ${named}`;
    throw new ForgeError(409, "artifact_in_use", message, "artifact_id", { dependents });
  }
  await markDeleted(db, storageId, principal.keyName);
  await recordAudit(db, { userId, action: "artifact_deleted", subject: id, principal });
}
