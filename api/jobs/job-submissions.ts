import { z } from "zod";
import { tenantScopeOf } from "../../core/accounts/permissions";
import { Conflict } from "../../core/errors";
import { declarationOf, JOB_TYPES, type JobType } from "../../core/jobs/job-types";
import { type Submission, submissionForms } from "../../core/jobs/payloads";
import { isFinal } from "../../core/jobs/states";
import { idempotencyHeader } from "../../platform/http/openapi";
import { type Route, route } from "../../platform/http/route";
import type { Context } from "../../services/context";
import { JobInserter } from "../../services/jobs/job-inserter";
import type { JobRow } from "../../services/jobs/jobs";
import { requireJob } from "./jobs";
import { jobSchema } from "./present-job";
import { readSubmission, requireJobType } from "./read-submission";
import { submitJob } from "./submit-job";

const ACCEPTED = { 201: { description: "the job, `pending`", schema: jobSchema } };

export function jobSubmissionRoutes(ctx: Context): Route[] {
  const inserter = new JobInserter(ctx);
  return [
    ...JOB_TYPES.map((type) => submissionRoute(ctx, inserter, type)),
    unknownType(),
    retryRoute(ctx, inserter),
  ];
}

function submissionRoute(ctx: Context, inserter: JobInserter, type: JobType): Route {
  return route<unknown, Submission>({
    method: "POST",
    paths: [`/api/jobs/${type}`, `/api/${type}`],
    scope: "user",
    operationId: type,
    tag: "Jobs",
    summary: `Submit a job: ${type}`,
    headers: idempotencyHeader,
    body: {
      schema: submissionForms(type) as z.ZodType<Submission>,
      parse: (body) => readSubmission(ctx, type, body),
      examples: declarationOf(type).examples,
    },
    responses: ACCEPTED,
    errorCodes: { 402: ["budget_exhausted"], 404: ["dataset_not_found", "checkpoint_not_found"] },
    outsideConnectionQueue: true,
    handle: async (call) =>
      await submitJob(ctx, inserter, call, {
        type,
        submission: call.body,
        userId: call.principal.userId,
        content: [type, call.body],
      }),
  });
}

/** POST /api/jobs/<unknown type>: the refusal names the closest known type. */
function unknownType(): Route {
  return route({
    method: "POST",
    paths: ["/api/jobs/:job_type"],
    scope: "user",
    operationId: "submitUnknown",
    tag: "Jobs",
    summary: "Refuse an unknown job type",
    undocumented: true,
    responses: ACCEPTED,
    handle: async ({ params }) => requireJobType(params.job_type ?? ""),
  });
}

function retryRoute(ctx: Context, inserter: JobInserter): Route {
  return route({
    method: "POST",
    paths: ["/api/jobs/:job_id/retry"],
    scope: "user",
    operationId: "retryJob",
    tag: "Jobs",
    summary: "Submit a finished job's payload again",
    description:
      "Creates a job with the same payload and options. Its `retried_from` is the old job's id.",
    headers: idempotencyHeader,
    body: { schema: z.strictObject({}), examples: {}, optional: true },
    responses: { 201: { description: "the new job, `pending`", schema: jobSchema } },
    errorCodes: { 402: ["budget_exhausted"], 404: ["job_not_found"], 409: ["job_not_finished"] },
    outsideConnectionQueue: true,
    async handle(call) {
      const { principal, params } = call;
      const job = await ctx.connectionQueues.user.run(principal.userId, () =>
        requireJob(ctx, params, tenantScopeOf(principal)),
      );
      if (!isFinal(job.status)) {
        throw new Conflict("job_not_finished", `the job is ${job.status}; it has not ended yet`);
      }
      return await submitJob(ctx, inserter, call, {
        type: job.job_type,
        submission: submissionOf(job),
        // An admin may retry another tenant's job. The new job belongs to that tenant too.
        userId: job.user_id,
        retriedFrom: job.job_id,
        content: job.job_id,
      });
    },
  });
}

const submissionOf = (job: JobRow): Submission => ({
  payload: job.payload,
  resources: job.resources,
  params: job.params,
  tags: job.tags,
  notes: job.notes ?? undefined,
  priority: job.priority,
  timeout_s: job.timeout_s,
  max_attempts: job.max_attempts,
});
