import { NotFound } from "../core/errors";
import type { Context } from "../infra/context";
import { listJobArtifacts } from "../infra/database/artifacts";
import { listAttempts } from "../infra/database/attempts";
import { findJob, type JobRow } from "../infra/database/jobs";
import type { ForgeRequest, Route } from "../infra/http/app";
import { presentArtifact } from "./artifacts";
import { presentAttempt, presentJob } from "./present-job";
import { viewerOf } from "./viewer";

export function jobRoutes(ctx: Context): Route[] {
  return [
    {
      method: "GET",
      paths: ["/api/jobs/:job_id", "/api/status/:job_id"],
      scope: "user",
      handle: async (request) => presentJob(await requireJob(ctx, request)),
    },
    {
      method: "GET",
      paths: ["/api/jobs/:job_id/attempts"],
      scope: "user",
      handle: async (request) => {
        const job = await requireJob(ctx, request);
        const attempts = await listAttempts(ctx.pool, job.job_id);
        return { attempts: attempts.map(presentAttempt) };
      },
    },
    {
      method: "GET",
      paths: ["/api/jobs/:job_id/artifacts"],
      scope: "user",
      handle: async (request) => {
        const job = await requireJob(ctx, request);
        const artifacts = await listJobArtifacts(ctx.pool, job.job_id);
        return { artifacts: artifacts.map(presentArtifact) };
      },
    },
  ];
}

/** The job that the path names, if the caller may see it. */
async function requireJob(ctx: Context, request: ForgeRequest): Promise<JobRow> {
  const { job_id: jobId } = request.params as { job_id: string };
  const job = await findJob(ctx.pool, jobId, viewerOf(request.principal));
  if (!job) throw new NotFound("job", jobId, "job_id");
  return job;
}
