import { z } from "zod";
import { tenantScopeOf } from "../../core/accounts/permissions";
import { Conflict, NotFound } from "../../core/errors";
import { type Route, route } from "../../platform/http/route";
import type { Context } from "../../services/context";
import { cancelJob } from "../../services/jobs/cancel-job";
import type { JobPresenter } from "./job-presenter";
import { requireJob } from "./jobs";
import { jobSchema } from "./present-job";

export function cancelRoute(ctx: Context, presenter: JobPresenter): Route {
  return route({
    method: "POST",
    paths: ["/api/jobs/:job_id/cancel"],
    scope: "user",
    operationId: "cancelJob",
    tag: "Jobs",
    summary: "Cancel a job",
    description:
      "The job will end as `cancelled` and is never queued again. If no worker runs the job, it has ended " +
      "with this answer. Otherwise it ends when its worker has stopped it or the grace period is over. " +
      "Repeating the request changes nothing.",
    body: { schema: z.strictObject({}), examples: {}, optional: true },
    responses: { 202: { description: "the job in its current state", schema: jobSchema } },
    errorCodes: { 404: ["job_not_found"], 409: ["job_finalising", "job_already_finished"] },
    async handle({ principal, params, request }) {
      const tenantScope = tenantScopeOf(principal);
      const { job_id: jobId = "" } = params;
      const answer = await cancelJob(ctx, jobId, tenantScope, principal.keyName);
      if (answer === "unknown") throw new NotFound("job", jobId, "job_id");
      if (answer === "finished") {
        throw new Conflict("job_already_finished", "the job has already ended");
      }
      if (answer === "finalising") {
        const message = "the job's result was accepted and is being finalised";
        throw new Conflict("job_finalising", message);
      }
      request.log.info({ job_id: jobId, answer }, "cancel accepted");
      return await presenter.presentOne(await requireJob(ctx, params, tenantScope));
    },
  });
}
