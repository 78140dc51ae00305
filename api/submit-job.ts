import { join } from "node:path";
import { closest } from "fastest-levenshtein";
import { ARTIFACT_FORMS } from "../core/artifacts";
import { checkDatasetUri } from "../core/dataset-uri";
import { InvalidRequest, NotFound } from "../core/errors";
import { isJobType, JOB_TYPES, type JobType } from "../core/job-types";
import type { Submission } from "../core/payloads";
import { requirementsOf, shapeOf } from "../core/requirements";
import type { Context } from "../infra/context";
import { findOwnArtifacts } from "../infra/database/artifacts";
import { insertJob, type JobWarning, type NewJob } from "../infra/database/jobs";
import { createOnce } from "../infra/http/idempotency";
import type { AnyCall } from "../infra/http/route";
import { newId } from "../infra/ids";
import { type Job, presentJob } from "./present-job";

/** For how long the accepting process alone may start a job's workflow, in seconds. */
const START_LEASE_S = 5;

interface Request {
  type: JobType;
  submission: Submission;
  /** Whose job it is. */
  userId: string;
  retriedFrom?: string;
  /** What was asked for, by which a repeated Idempotency-Key is told from a reused one. */
  content: unknown;
}

/** Accepts a job: from the answer on, it is claimable and will come to an end. */
export async function submitJob(ctx: Context, call: AnyCall, asked: Request): Promise<Job> {
  const { type, submission, userId } = asked;
  const { dataset_uri: uri } = submission.payload;
  if (typeof uri === "string") checkDatasetUri(uri, join(ctx.config.storeDir, "artifacts"));
  const job = newJob(ctx, call, asked);
  job.warnings = await unresolvedReferences(ctx, userId, submission.payload);

  const { answer, isNew } = await createOnce(ctx, call, {
    content: asked.content,
    isOneStatement: true,
    create: async (db) => presentJob(await insertJob(db, job)),
  });
  if (!isNew) return answer;
  call.request.log.info({ job_id: job.jobId, job_type: type, user_id: userId }, "job accepted");
  ctx.signals.queueChanged();
  ctx.signals.emit("outbox", { jobId: job.jobId, attempt: 0 });
  return answer;
}

export function requireJobType(type: string): JobType {
  if (isJobType(type)) return type;
  const near = closest(type, [...JOB_TYPES]);
  throw new InvalidRequest(`there is no job type "${type}"; did you mean "${near}"?`, "job_type");
}

function newJob(
  ctx: Context,
  { principal, request }: AnyCall,
  { type, submission, userId, retriedFrom }: Request,
): NewJob {
  const { policy, timeoutS } = ctx.config.jobs;
  const requirements = requirementsOf(type, submission.resources, policy);
  const form = ARTIFACT_FORMS[type];
  return {
    jobId: newId("job"),
    userId,
    createdBy: principal.keyName,
    jobType: type,
    payload: submission.payload,
    resources: submission.resources,
    params: submission.params,
    tags: submission.tags,
    notes: submission.notes ?? null,
    warnings: [],
    retriedFrom: retriedFrom ?? null,
    priority: submission.priority,
    timeoutS: submission.timeout_s ?? policy[type]?.timeout_s ?? timeoutS,
    maxAttempts: submission.max_attempts,
    requirements,
    shape: shapeOf(userId, requirements),
    rateCard: ctx.rateCard,
    requestId: request.id,
    outputIds: { [form.idField]: newId(form.idPrefix) },
    leaseS: START_LEASE_S,
  };
}

/** Fields of a payload that name an artifact, and what a missing one is called. */
const REFERENCES = { dataset_id: "dataset", checkpoint_id: "checkpoint" } as const;

/** A worker may know ids that the registry doesn't, so an unknown one is told, unless we are strict. */
async function unresolvedReferences(
  ctx: Context,
  userId: string,
  payload: Record<string, unknown>,
): Promise<JobWarning[]> {
  const named = Object.entries(REFERENCES).flatMap(([param, thing]) => {
    const id = payload[param];
    return typeof id === "string" ? [{ param, thing, id }] : [];
  });
  if (named.length === 0) return [];
  const ids = named.map(({ id }) => id);
  const artifacts = await findOwnArtifacts(ctx.pool, userId, ids);
  const own = artifacts.map(({ artifact_id }) => artifact_id);
  const unresolved = named.filter(({ id }) => !own.includes(id));
  const [first] = unresolved;
  if (first && ctx.config.jobs.strictReferences) {
    throw new NotFound(first.thing, first.id, first.param);
  }
  return unresolved.map(({ param, id }) => ({
    code: "unresolved_reference",
    param,
    message: `"${id}" is not among your artifacts; it is handed to the worker as it is`,
  }));
}
