import { z } from "zod";
import { type TenantScope, tenantScopeOf } from "../../core/accounts/permissions";
import { NotFound } from "../../core/errors";
import { JOB_TYPES } from "../../core/jobs/job-types";
import { MAX_ATTEMPTS } from "../../core/jobs/retry";
import { ERROR_CODES, JOB_STATUSES } from "../../core/jobs/states";
import { givenTime } from "../../core/timestamp";
import { sendIfChanged } from "../../platform/http/conditional";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { type Route, route } from "../../platform/http/route";
import { listJobArtifacts } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import { listAttempts } from "../../services/jobs/attempts";
import { findJobSnapshot, type JobSnapshot } from "../../services/jobs/job-events";
import { listJobs } from "../../services/jobs/job-list";
import { JobReader } from "../../services/jobs/job-reader";
import { findJob, type JobRow } from "../../services/jobs/jobs";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";
import { artifactSchema, presentArtifact } from "../artifacts/present-artifact";
import { searchQuery } from "../search-query";
import type { JobPresenter } from "./job-presenter";
import { attemptSchema, jobSchema, presentAttempt } from "./present-job";

const jobsQuery = z.strictObject({
  ...pageQuery,
  status: z.array(z.enum(JOB_STATUSES)).min(1).max(16).optional().describe("any of these"),
  job_type: z.array(z.enum(JOB_TYPES)).max(16).optional().describe("any of these"),
  tag: z.array(z.string().min(1).max(128)).max(16).optional().describe("all of these"),
  worker_id: z.string().min(1).max(128).optional(),
  pipeline_id: z.string().min(1).max(128).optional(),
  created_after: givenTime.optional(),
  created_before: givenTime.optional(),
  completed_after: givenTime.optional(),
  completed_before: givenTime.optional(),
  created_by: z.string().min(1).max(128).optional().describe("name of the submitting key"),
  error_code: z.array(z.enum(ERROR_CODES)).max(16).optional().describe("any of these"),
  ...searchQuery("the beginning of a job's id, or a part of a tag or of the notes"),
  ...tenantQuery,
});

/** The query parameter `attempt` of a job's logs and metrics. */
export const attemptNumber = z.coerce.number().int().min(1).max(MAX_ATTEMPTS).optional();

const NOT_FOUND = { 404: ["job_not_found"] };

export function jobRoutes(ctx: Context, presenter: JobPresenter): Route[] {
  const reader = new JobReader(ctx);
  return [
    route({
      method: "GET",
      paths: ["/api/jobs"],
      scope: "user",
      operationId: "listJobs",
      tag: "Jobs",
      summary: "List jobs, newest first",
      sharesResult: true,
      query: jobsQuery,
      responses: { 200: { description: "a page of jobs", schema: listOf("jobs", jobSchema) } },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const filter = {
          statuses: query.status,
          jobTypes: query.job_type,
          tags: query.tag,
          workerId: query.worker_id,
          pipelineId: query.pipeline_id,
          createdAfter: query.created_after,
          createdBefore: query.created_before,
          completedAfter: query.completed_after,
          completedBefore: query.completed_before,
          createdBy: query.created_by,
          errorCodes: query.error_code,
          text: query.q,
        };
        const rows = await listJobs(ctx.pool, tenantFilter(principal, query.user_id), filter, page);
        const present = await presenter.present(rows);
        return presentPage("jobs", rows, page, (job) => job.job_id, present);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/jobs/:job_id", "/api/status/:job_id"],
      scope: "user",
      operationId: "getJob",
      tag: "Jobs",
      summary: "Read a job",
      headers: {
        "If-None-Match": z.string().optional().describe("the ETag of an earlier answer"),
      },
      responses: {
        200: {
          description: "the job",
          schema: jobSchema,
          headers: { ETag: "changes with the job" },
        },
        304: { description: "the job has not changed: If-None-Match still holds its ETag" },
      },
      errorCodes: NOT_FOUND,
      outsideConnectionQueue: true,
      async handle({ principal, params, request, reply }) {
        const job = await required(params, (jobId) => reader.find(jobId, principal));
        const shown = await ctx.connectionQueues.user.run(principal.userId, () =>
          presenter.presentOne(job),
        );
        return sendIfChanged(request, reply, shown);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/jobs/:job_id/attempts"],
      scope: "user",
      operationId: "listJobAttempts",
      tag: "Jobs",
      summary: "List a job's attempts",
      responses: {
        200: {
          description: "the attempts, oldest first",
          schema: z.object({ attempts: z.array(attemptSchema) }),
        },
      },
      errorCodes: NOT_FOUND,
      async handle({ principal, params }) {
        const tenantScope = tenantScopeOf(principal);
        const job = await requireJobSnapshot(ctx, params, tenantScope);
        const attempts = await listAttempts(ctx.pool, job.job_id, tenantScope);
        return { attempts: attempts.map(presentAttempt) };
      },
    }),
    route({
      method: "GET",
      paths: ["/api/jobs/:job_id/artifacts"],
      scope: "user",
      operationId: "listJobArtifacts",
      tag: "Jobs",
      summary: "List a job's artifacts",
      responses: {
        200: {
          description: "the job's artifacts; empty until the job has completed",
          schema: z.object({ artifacts: z.array(artifactSchema) }),
        },
      },
      errorCodes: NOT_FOUND,
      async handle({ principal, params }) {
        const tenantScope = tenantScopeOf(principal);
        const job = await requireJobSnapshot(ctx, params, tenantScope);
        const artifacts = await listJobArtifacts(ctx.pool, job.job_id, tenantScope);
        return { artifacts: artifacts.map(presentArtifact) };
      },
    }),
  ];
}

/** The job in the path, if the caller may see it. @throws 404 */
export const requireJob = (
  ctx: Context,
  params: Params,
  tenantScope: TenantScope,
): Promise<JobRow> => required(params, (jobId) => findJob(ctx.pool, jobId, tenantScope));

/** Like `requireJob`, but reads only the job's state, without payload and result. */
export const requireJobSnapshot = (
  ctx: Context,
  params: Params,
  tenantScope: TenantScope,
): Promise<JobSnapshot> =>
  required(params, (jobId) => findJobSnapshot(ctx.pool, jobId, tenantScope));

type Params = Record<string, string>;

async function required<Row>(
  { job_id: jobId = "" }: Params,
  find: (jobId: string) => Promise<Row | undefined>,
): Promise<Row> {
  const job = await find(jobId);
  if (!job) throw new NotFound("job", jobId, "job_id");
  return job;
}
