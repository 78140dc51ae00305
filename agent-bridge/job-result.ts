import { createHash } from "node:crypto";
import { z } from "zod";
import { mayActFor, type Principal } from "../core/accounts/permissions";
import {
  ARTIFACT_FORMS,
  ARTIFACT_ID,
  artifactPrefix,
  GENERATED_ID,
  storeUri,
} from "../core/artifacts/artifacts";
import { MAX_BILL_USD, priceJob } from "../core/billing/price-job";
import { NO_USAGE, type ReportedUsage, readUsage, readUsageLeniently } from "../core/billing/usage";
import { canonicalJson } from "../core/canonical-json";
import { Conflict, ForgeError, InvalidRequest, NotFound } from "../core/errors";
import { type Route, route } from "../platform/http/route";
import { newId } from "../platform/ids";
import type { Queryable } from "../platform/postgres/pool";
import type { OutcomeKey } from "../platform/signals";
import { reserveArtifact } from "../services/artifacts/artifacts";
import type { Context } from "../services/context";
import { strikeWorker } from "../services/fleet/strikes";
import { lockWorker, releaseWorker } from "../services/fleet/workers";
import { type AttemptRow, lockAttemptOf } from "../services/jobs/attempts";
import { type AttemptEndDetails, endAttempt } from "../services/jobs/end-attempt";
import { type JobRow, lockJob } from "../services/jobs/jobs";
import { notRegistered } from "./heartbeat";
import { staleLease } from "./require-lease";

const common = {
  worker_id: z.string().min(1).max(128),
  job_id: z.string().min(1).max(128),
  attempt: z.int().min(1).max(1_000).nullish(),
  metrics: z.record(z.string(), z.unknown()).default({}),
  logs_uri: z.string().max(2048).nullish(),
  lease_token: z.string().max(128).nullish().describe("the token sent to next_job, if any"),
  leaving: z
    .boolean()
    .default(false)
    .describe(
      "true: the worker takes no other job; false: it may be assigned its next job at once",
    ),
};

/** spec.md 4.3, with the additions of contract.md. Unknown fields are ignored. */
const jobResult = z.discriminatedUnion("status", [
  z.object({
    ...common,
    status: z.literal("completed"),
    result: z.record(z.string(), z.unknown()).default({}),
    artifacts_uri: z.string().max(2048).nullish(),
  }),
  z.object({
    ...common,
    status: z.literal("failed"),
    error: z.string().max(65_536).default("the worker gave no reason"),
    retryable: z.boolean().default(false),
  }),
]);

type JobResult = z.output<typeof jobResult>;

export function jobResultRoute(ctx: Context): Route {
  return route({
    method: "POST",
    paths: ["/api/workers/job_result", "/worker/job_result"],
    scope: "worker",
    skipsRateLimit: true,
    operationId: "jobResult",
    tag: "Worker protocol",
    summary: "Deliver the result of a job",
    description:
      "The same result again gets the same answer, so a worker may retry until it has an answer.",
    body: {
      schema: jobResult,
      examples: {
        completed: {
          worker_id: "gpu-box-1",
          job_id: "job_example",
          status: "completed",
          result: { checkpoint_id: "ckpt_example", gpu_hours: 1.5 },
          artifacts_uri: "s3://team-data/checkpoints/ckpt_example/",
          logs_uri: "s3://team-data/logs/job_example.log",
        },
        failed: {
          worker_id: "gpu-box-1",
          job_id: "job_example",
          status: "failed",
          error: "CUDA out of memory",
          logs_uri: "s3://team-data/logs/job_example.log",
        },
      },
    },
    responses: {
      200: {
        description: "the result is accepted; the worker may discard the job",
        schema: z.object({ job_id: z.string(), accepted: z.literal(true) }),
      },
    },
    errorCodes: {
      404: ["worker_not_registered", "job_not_found"],
      409: ["stale_attempt"],
    },
    async handle({ body: given, principal, request }) {
      refuseLargeResult(given, ctx.config.jobs.maxResultBytes);
      const accepted = await ctx.clockWatch.transaction((db) =>
        accept(db, given, principal, {
          leaseS: ctx.config.outbox.firstLeaseS,
          offerS: given.leaving ? 0 : ctx.config.fleet.offerS,
        }),
      );
      if (accepted) {
        ctx.signals.emit("outbox", accepted);
        const { job_id, worker_id, status } = given;
        const { attempt } = accepted;
        request.log.info({ job_id, attempt, worker_id, status }, "result accepted");
      }
      return { job_id: given.job_id, accepted: true };
    },
  });
}

/** Checks the lease, stores the outcome, frees the worker, and adds the outbox entry. */
async function accept(
  db: Queryable,
  given: JobResult,
  principal: Principal,
  { leaseS, offerS }: { leaseS: number; offerS: number },
): Promise<OutcomeKey | undefined> {
  const { worker_id: workerId, job_id: jobId } = given;
  const job = await lockJob(db, jobId);
  const attempt = job && (await lockAttemptOf(db, jobId, workerId, given.attempt ?? null));
  const worker = await lockWorker(db, workerId);
  if (!worker || !mayActFor(principal, worker)) throw notRegistered(workerId);
  const isKnown = job?.user_id === principal.userId || attempt !== undefined;
  if (!job || !(isKnown || (await lockAttemptOf(db, jobId, workerId, null)))) {
    throw new NotFound("job", jobId, "job_id");
  }
  const digest = digestOf(given);
  // The same result again: the worker did not receive the response to its first request.
  if (attempt?.state === "ended" && attempt.result_digest === digest) return undefined;
  if (attempt?.state !== "running") throw staleAttempt(given, attempt);
  if (attempt.lease_token !== null && attempt.lease_token !== given.lease_token) {
    throw staleLease(jobId, attempt.attempt, workerId);
  }
  const ending = await endingOf(db, given, job, attempt);
  const outcome = await endAttempt(db, job, attempt, { ...ending, resultDigest: digest, leaseS });
  await releaseWorker(db, workerId, { succeeded: outcome === "completed", offerS });
  if (outcome === "failed") await strikeWorker(db, workerId, jobId);
  return { topic: "outcome", jobId, attempt: attempt.attempt, outcome };
}

/**
 * Reads the usage from a result. If the attempt failed, ignores invalid numbers: its end must not
 * be rejected, and failed attempts are not billed by default.
 */
const usageOf = (given: JobResult): ReportedUsage =>
  given.status === "completed"
    ? readUsage(given.metrics, given.result)
    : readUsageLeniently(given.metrics);

/**
 * Limits the cost of a job, because plausible numbers may still add up to an absurd cost. Does not
 * count GPU hours (bounded by the measured time) and deployment days (not reported by the worker).
 * @returns the usage; for a failed attempt over the limit, only its GPU hours.
 * @throws InvalidRequest for a completed attempt over the limit.
 */
function limitUsage(usage: ReportedUsage, given: JobResult, job: JobRow): ReportedUsage {
  const counted = { ...NO_USAGE, ...usage, gpu_hours: 0, deployment_lifetime_days: 0 };
  const bill = priceJob(job.job_type, [{ usage: counted, gpu_tokens: [] }], job.rate_card);
  if (Number(bill.totalCostUsd) <= MAX_BILL_USD) return usage;
  if (given.status === "failed") return { ...NO_USAGE, gpu_hours: usage.gpu_hours };
  throw new InvalidRequest(
    `the usage costs ${bill.totalCostUsd} USD, over the limit of ${MAX_BILL_USD} USD for a job`,
    "metrics",
  );
}

function staleAttempt(given: JobResult, attempt: AttemptRow | undefined): Conflict {
  const which = attempt
    ? `attempt ${attempt.attempt} of job "${given.job_id}" has ended`
    : `job "${given.job_id}" was not dispatched to worker "${given.worker_id}" with that attempt`;
  return new Conflict("stale_attempt", `${which}; the result was ignored`);
}

async function endingOf(
  db: Queryable,
  given: JobResult,
  job: JobRow,
  attempt: AttemptRow,
): Promise<AttemptEndDetails> {
  const base = { metrics: given.metrics, logsUri: given.logs_uri ?? null };
  const usage = limitUsage(usageOf(given), given, job);
  if (given.status === "failed" || job.cancel_requested_at !== null) {
    const { error, retryable } =
      given.status === "failed" ? given : { error: null, retryable: false };
    return { ...base, outcome: "failed", usage, error, retryable };
  }
  if (job.deployment_id !== null) {
    // The job has added a placement to an existing deployment. The job makes no artifact: the
    // deployment keeps the artifact of its first job.
    const result = { ...given.result, deployment_id: job.deployment_id };
    return { ...base, outcome: "completed", result, usage };
  }
  const { idField } = ARTIFACT_FORMS[job.job_type];
  const { artifactId, minted } = nameArtifact(given.result, job, attempt);
  // Refuse an id that was generated for another attempt: it names the folder of that attempt's
  // uploads.
  const isOfOtherAttempt = GENERATED_ID.test(artifactId) && artifactId !== minted;
  // A folder is named by its artifact's id (spec.md 2.6). Tenants share the store and may choose
  // the same id. If another tenant already has that folder, use the generated id as storage id.
  for (const storageId of isOfOtherAttempt ? [] : new Set([artifactId, minted])) {
    const uri = uriOf(given.artifacts_uri, storeUri(artifactPrefix(job.job_type, storageId)));
    if (await reserve(db, { artifactId, storageId, uri }, job, attempt)) {
      const result = { ...given.result, [idField]: artifactId };
      return { ...base, outcome: "completed", result, usage, artifactsUri: uri };
    }
  }
  const error = `the result's ${idField} "${artifactId}" is taken`;
  return { ...base, outcome: "failed", error, errorCode: "artifact_conflict" };
}

/**
 * The URI of an artifact's files. Ignores a reported `forge:` or `file:` URI: in Forge's own store,
 * an artifact is always in its own folder.
 */
const uriOf = (reported: string | null | undefined, own: string): string =>
  /^(forge|file):/i.test(reported ?? "") ? own : (reported ?? own);

async function reserve(
  db: Queryable,
  ids: { artifactId: string; storageId: string; uri: string },
  job: JobRow,
  { attempt }: AttemptRow,
): Promise<boolean> {
  const { type: artifactType, kind } = ARTIFACT_FORMS[job.job_type];
  const { user_id: userId, job_id: jobId, created_by: createdBy } = job;
  const owner = { userId, jobId, attempt, createdBy };
  return await reserveArtifact(db, { ...ids, ...owner, artifactType, kind });
}

/** The artifact's id: the one that the worker chose, else the one generated for this attempt. */
function nameArtifact(
  result: Record<string, unknown>,
  job: JobRow,
  attempt: AttemptRow,
): { artifactId: string; minted: string } {
  const { idField, idPrefix } = ARTIFACT_FORMS[job.job_type];
  const named = result[idField];
  if (named !== undefined && (typeof named !== "string" || !ARTIFACT_ID.test(named))) {
    throw new InvalidRequest(
      `"result.${idField}" must be letters, digits, . _ - and at most 128 long`,
      `result.${idField}`,
    );
  }
  const minted = attempt.output_ids[idField] ?? newId(idPrefix);
  return { artifactId: named ?? minted, minted };
}

function refuseLargeResult(given: JobResult, maxBytes: number): void {
  if (given.status !== "completed") return;
  const text = JSON.stringify(given.result) + JSON.stringify(given.metrics);
  if (Buffer.byteLength(text) > maxBytes) {
    throw new ForgeError(413, "body_too_large", `the result is over ${maxBytes} bytes`, "result");
  }
}

/** Equal for equal results: ignores the order of keys, the lease token and `leaving`. */
const digestOf = ({ lease_token: _, leaving: __, ...given }: JobResult): string =>
  createHash("sha256").update(canonicalJson(given)).digest("hex");
