import { z } from "zod";
import { ARTIFACT_KINDS, ARTIFACT_TYPES } from "../core/artifacts";
import { Conflict, ForgeError } from "../core/errors";
import { manifestSchema } from "../core/manifest-schema";
import type { Context } from "../infra/context";
import { buryArtifact, listDependents, lockArtifact } from "../infra/database/artifact-deletion";
import { listArtifacts } from "../infra/database/artifacts";
import { recordAudit } from "../infra/database/audit";
import { findStatus } from "../infra/database/deployments";
import type { Queryable } from "../infra/database/pool";
import { transaction } from "../infra/database/transaction";
import { listOf, pageOf, pageQuery, presentPage } from "../infra/http/lists";
import type { Principal } from "../infra/http/principal";
import { type Route, route } from "../infra/http/route";
import { requireArtifact } from "./find-artifact";
import { artifactSchema, presentArtifact } from "./present-artifact";
import { tenantFilter, tenantQuery } from "./tenant-filter";
import { givenTime } from "./timestamp";

const artifactsQuery = z.strictObject({
  ...pageQuery,
  type: z.enum(ARTIFACT_TYPES).optional(),
  kind: z.array(z.enum(ARTIFACT_KINDS)).min(1).max(16).optional().describe("any of these"),
  job_id: z.string().min(1).max(128).optional().describe("what this job left behind"),
  source: z.string().min(1).max(128).optional().describe("what was made from this artifact"),
  name: z.string().min(1).max(256).optional().describe("of an uploaded dataset"),
  created_after: givenTime.optional(),
  created_before: givenTime.optional(),
  deleted: z.enum(["true", "false"]).default("false").describe("true: deleted ones too"),
  ...tenantQuery,
});

const NOT_FOUND = { 404: ["artifact_not_found"] };

export function artifactRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/artifacts"],
      scope: "user",
      operationId: "listArtifacts",
      tag: "Artifacts",
      summary: "List artifacts, newest first",
      query: artifactsQuery,
      answers: {
        200: { description: "a page of artifacts", schema: listOf("artifacts", artifactSchema) },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const viewer = tenantFilter(principal, query.user_id);
        const filter = {
          type: query.type,
          kinds: query.kind,
          jobId: query.job_id,
          source: query.source,
          name: query.name,
          createdAfter: query.created_after,
          createdBefore: query.created_before,
          deleted: query.deleted === "true",
        };
        const rows = await listArtifacts(ctx.pool, viewer, filter, page);
        return presentPage("artifacts", rows, page, (row) => row.artifact_id, presentArtifact);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id"],
      scope: "user",
      operationId: "getArtifact",
      tag: "Artifacts",
      summary: "Read an artifact's entry in the registry",
      answers: { 200: { description: "the artifact", schema: artifactSchema } },
      refusals: NOT_FOUND,
      handle: async ({ params, principal }) =>
        presentArtifact(await requireArtifact(ctx, params, principal)),
    }),
    route({
      method: "GET",
      paths: ["/api/artifacts/:artifact_id/manifest"],
      scope: "user",
      operationId: "getManifest",
      tag: "Artifacts",
      summary: "Read an artifact's manifest",
      answers: { 200: { description: "the manifest", schema: manifestSchema } },
      refusals: NOT_FOUND,
      handle: async ({ params, principal }) =>
        (await requireArtifact(ctx, params, principal)).manifest,
    }),
    route({
      method: "DELETE",
      paths: ["/api/artifacts/:artifact_id"],
      scope: "user",
      operationId: "deleteArtifact",
      tag: "Artifacts",
      summary: "Delete an artifact's bytes",
      description:
        "Its entry and manifest stay, so that what was made from it can still be explained. Refused while " +
        "something depends on it: what was made from it, a job under way that names it, a live deployment.",
      answers: { 200: { description: "the tombstone", schema: artifactSchema } },
      refusals: { ...NOT_FOUND, 409: ["artifact_in_use", "deployment_active"] },
      async handle({ params, principal, request }) {
        const { artifact_id: id } = await requireArtifact(ctx, params, principal);
        await transaction(ctx.pool, (db) => bury(db, id, principal));
        request.log.info({ artifact_id: id }, "artifact deleted");
        return presentArtifact(await requireArtifact(ctx, params, principal));
      },
    }),
  ];
}

async function bury(db: Queryable, id: string, principal: Principal): Promise<void> {
  const artifact = await lockArtifact(db, id);
  if (!artifact || artifact.deleted_at !== null) return;
  const status = artifact.kind === "deployment" ? await findStatus(db, id) : undefined;
  if (status !== undefined && status !== "stopped") {
    throw new Conflict("deployment_active", `deployment "${id}" is ${status}; stop it first`);
  }
  const dependents = await listDependents(db, id);
  if (dependents.length > 0) {
    const named = dependents.map((dependent) => `${dependent.type} ${dependent.id}`).join(", ");
    throw new ForgeError(409, "artifact_in_use", `it is needed by ${named}`, "artifact_id", {
      dependents,
    });
  }
  await buryArtifact(db, id, principal.keyName);
  const { user_id: userId } = artifact;
  await recordAudit(db, { userId, action: "artifact_deleted", subject: id, principal });
}
