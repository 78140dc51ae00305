import { createHash } from "node:crypto";
import { join } from "node:path";
import { closest } from "fastest-levenshtein";
import { ARTIFACT_FORMS } from "../core/artifacts";
import { checkDatasetUri } from "../core/dataset-uri";
import { Conflict, ForgeError, InvalidRequest } from "../core/errors";
import { isJobType, JOB_TYPES, type JobType } from "../core/job-types";
import { knownFields, parseSubmission, type Submission } from "../core/payloads";
import { requirementsOf, shapeOf } from "../core/requirements";
import type { Context } from "../infra/context";
import { findOwnArtifacts } from "../infra/database/artifacts";
import { claimKey, storeResponse } from "../infra/database/idempotency";
import { insertJob, type NewJob } from "../infra/database/jobs";
import type { Queryable } from "../infra/database/pool";
import { transaction } from "../infra/database/transaction";
import type { ForgeRequest, Route } from "../infra/http/app";
import type { Principal } from "../infra/http/principal";
import { withHints } from "../infra/http/validation";
import { newId } from "../infra/ids";
import { presentJob } from "./present-job";

/** For how long the accepting process alone may start a job's workflow, in seconds. */
const START_LEASE_S = 5;

const REFERENCES = ["dataset_id", "checkpoint_id"] as const;

export function submitJobRoutes(ctx: Context): Route[] {
  const byPath: Route = {
    method: "POST",
    paths: ["/api/jobs/:job_type"],
    scope: "user",
    handle: async (request, reply) => {
      const { job_type: type } = request.params as { job_type: string };
      reply.code(201);
      return await submit(ctx, requireJobType(type), request, reply.header.bind(reply));
    },
  };
  const bare = JOB_TYPES.map(
    (type): Route => ({
      method: "POST",
      paths: [`/api/${type}`],
      scope: "user",
      handle: async (request, reply) => {
        reply.code(201);
        return await submit(ctx, type, request, reply.header.bind(reply));
      },
    }),
  );
  return [byPath, ...bare];
}

type SetHeader = (name: string, value: string) => unknown;

async function submit(
  ctx: Context,
  type: JobType,
  request: ForgeRequest,
  setHeader: SetHeader,
): Promise<unknown> {
  const submission = withHints(knownFields(type), () =>
    parseSubmission(type, request.body, { teacher: ctx.config.jobs.defaultTeacher }),
  );
  const { dataset_uri: uri } = submission.payload;
  if (typeof uri === "string") checkDatasetUri(uri, join(ctx.config.storeDir, "artifacts"));
  const job = newJob(ctx, type, submission, request.principal, request.id);
  job.warnings = await unresolvedReferences(ctx, request.principal.userId, submission.payload);

  const { answer, replayed } = await insertOnce(ctx, job, request);
  if (replayed) {
    setHeader("idempotency-replayed", "true");
    return answer;
  }
  request.log.info({ job_id: job.jobId, job_type: type, user_id: job.userId }, "job accepted");
  ctx.signals.queueChanged();
  ctx.signals.emit("outbox", { jobId: job.jobId, attempt: 0 });
  return answer;
}

function requireJobType(type: string): JobType {
  if (isJobType(type)) return type;
  const near = closest(type, [...JOB_TYPES]);
  throw new InvalidRequest(`there is no job type "${type}"; did you mean "${near}"?`, "job_type");
}

function newJob(
  ctx: Context,
  type: JobType,
  submission: Submission,
  principal: Principal,
  requestId: string,
): NewJob {
  const { trainNeedsGpu, timeoutS } = ctx.config.jobs;
  const requirements = requirementsOf(type, submission.resources, { trainNeedsGpu });
  const form = ARTIFACT_FORMS[type];
  return {
    jobId: newId("job"),
    userId: principal.userId,
    createdBy: principal.keyName,
    jobType: type,
    payload: submission.payload,
    resources: submission.resources,
    params: submission.params,
    tags: submission.tags,
    notes: submission.notes ?? null,
    warnings: [],
    priority: submission.priority,
    timeoutS: submission.timeout_s ?? timeoutS,
    maxAttempts: submission.max_attempts,
    requirements,
    shape: shapeOf(principal.userId, requirements),
    rateCard: ctx.rateCard,
    requestId,
    outputIds: { [form.idField]: newId(form.idPrefix) },
    leaseS: START_LEASE_S,
  };
}

/** A worker may know ids that the registry doesn't, so an unknown one is told, not refused. */
async function unresolvedReferences(
  ctx: Context,
  userId: string,
  payload: Record<string, unknown>,
): Promise<unknown[]> {
  const named = REFERENCES.flatMap((param) => {
    const id = payload[param];
    return typeof id === "string" ? [{ param, id }] : [];
  });
  if (named.length === 0) return [];
  const own = await findOwnArtifacts(
    ctx.pool,
    userId,
    named.map(({ id }) => id),
  );
  const unresolved = named.filter(({ id }) => !own.includes(id));
  return unresolved.map(({ param, id }) => ({
    code: "unresolved_reference",
    param,
    message: `"${id}" is not among your artifacts; it is handed to the worker as it is`,
  }));
}

/** Inserts the job; with an Idempotency-Key once, however often and wherever the request arrives. */
async function insertOnce(
  ctx: Context,
  job: NewJob,
  request: ForgeRequest,
): Promise<{ answer: unknown; replayed: boolean }> {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return { answer: await insert(ctx.pool, job), replayed: false };
  if (typeof key !== "string" || key.length < 1 || key.length > 255) {
    throw new InvalidRequest("Idempotency-Key must be 1 to 255 characters", "Idempotency-Key");
  }
  const fingerprint = createHash("sha256")
    .update(JSON.stringify([job.jobType, request.body]))
    .digest("hex");
  return await transaction(ctx.pool, async (db) => {
    const first = await claimKey(db, job.userId, key, fingerprint);
    if (first === undefined) {
      const answer = await insert(db, job);
      await storeResponse(db, job.userId, key, answer);
      return { answer, replayed: false };
    }
    if (first.fingerprint !== fingerprint) {
      const message = "this Idempotency-Key was used with another body";
      throw new ForgeError(422, "idempotency_key_reused", message, "Idempotency-Key");
    }
    if (!first.response)
      throw new Conflict("request_in_flight", "the first request is still in flight");
    return { answer: first.response, replayed: true };
  });
}

async function insert(db: Queryable, job: NewJob): Promise<unknown> {
  return presentJob(await insertJob(db, job));
}
