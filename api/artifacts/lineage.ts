import { z } from "zod";
import { findByEitherId } from "../../core/artifacts/artifacts";
import { artifactIdIn } from "../../core/artifacts/dataset-uri";
import { drawLineage, type LineageFacts } from "../../core/artifacts/lineage";
import { timestamp } from "../../core/timestamp";
import { type Route, route } from "../../platform/http/route";
import { ownStoreOf } from "../../platform/store/open-store";
import {
  type LineageArtifact,
  listLineage,
  listLineageJobs,
} from "../../services/artifacts/lineage";
import type { Context } from "../../services/context";
import { tenantQuery } from "../accounts/tenant-filter";
import { requireArtifact } from "./find-artifact";

/**
 * The maximum number of artifacts upstream, and also downstream. A larger graph is truncated, and
 * the response has `truncated: true`.
 */
const MAX_EACH_WAY = 1_000;

const nodeSchema = z
  .object({
    id: z.string(),
    type: z.enum(["artifact", "job", "pipeline", "external"]),
    kind: z.string().optional().describe("an artifact's kind or a job's type"),
    name: z.string().optional(),
    status: z.string().optional().describe("a job's status"),
    created_at: timestamp.optional(),
    deleted_at: timestamp.optional(),
  })
  .meta({ id: "LineageNode" });

const edgeSchema = z
  .object({ from: z.string(), to: z.string(), relation: z.enum(["input", "output", "step"]) })
  .meta({ id: "LineageEdge" });

const lineageSchema = z
  .object({
    artifact_id: z.string(),
    nodes: z.array(nodeSchema),
    edges: z.array(edgeSchema),
    truncated: z
      .boolean()
      .describe(
        `true: over ${MAX_EACH_WAY} artifacts upstream or downstream, the rest is left out`,
      ),
  })
  .meta({ id: "Lineage" });

export function lineageRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/artifacts/:artifact_id/lineage"],
    scope: "user",
    operationId: "getLineage",
    tag: "Artifacts",
    summary: "Read an artifact's lineage",
    description:
      "Edges follow the data: artifact → job (`input`), job → artifact (`output`), pipeline → job (`step`). " +
      "An `external` node is not registered in Forge: a base model, a teacher, or a URI elsewhere.",
    query: z.strictObject(tenantQuery),
    responses: { 200: { description: "the graph", schema: lineageSchema } },
    errorCodes: { 400: ["ambiguous_id"], 404: ["artifact_not_found"] },
    async handle(call) {
      const { artifact_id: id, user_id: userId } = await requireArtifact(ctx, call);
      const artifacts = await listLineage(ctx.pool, id, userId, MAX_EACH_WAY);
      const jobIds = artifacts.flatMap((artifact) => artifact.source_jobs);
      const jobs = await listLineageJobs(ctx.pool, [...new Set(jobIds)], userId);
      const facts: LineageFacts = {
        artifacts: artifacts.map((artifact) => ({
          id: artifact.artifact_id,
          kind: artifact.kind,
          name: artifact.name,
          createdAt: artifact.created_at.toISOString(),
          deletedAt: artifact.deleted_at?.toISOString() ?? null,
          sourceArtifacts: artifact.source_artifacts,
          sourceJobs: artifact.source_jobs,
          externals: externalsOf(ctx, artifact, artifacts),
        })),
        jobs: jobs.map((job) => ({
          id: job.job_id,
          jobType: job.job_type,
          status: job.status,
          pipelineId: job.pipeline_id,
          createdAt: job.created_at.toISOString(),
        })),
      };
      const truncated = artifacts.length >= MAX_EACH_WAY;
      return { artifact_id: id, ...drawLineage(facts), truncated };
    },
  });
}

/** References in the manifest that are not artifacts of the registry. */
function externalsOf(
  ctx: Context,
  { named, source_artifacts: sources }: LineageArtifact,
  artifacts: LineageArtifact[],
): string[] {
  return named.filter((name) => {
    const id = name.includes("://") ? artifactIdIn(name, ownStoreOf(ctx.config.store)) : name;
    const source = findByEitherId(artifacts, id)?.artifact_id ?? id;
    return !(typeof source === "string" && sources.includes(source));
  });
}
