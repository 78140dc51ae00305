import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { invalidKey, restrictingKeyId } from "../core/accounts/permissions";
import { storeUri } from "../core/artifacts/artifacts";
import { logKey } from "../core/jobs/attempt-files";
import { JOB_TYPES } from "../core/jobs/job-types";
import { type Route, route } from "../platform/http/route";
import { plainAddress } from "../platform/net/address-policy";
import type { Context } from "../services/context";
import { findOfferAndFit } from "../services/fleet/assignment";
import type { Scheduler } from "../services/fleet/scheduler";
import {
  findOffer,
  type Offer,
  offerWorker,
  type WorkerCall,
  withdrawOffer,
} from "../services/fleet/workers";
import {
  type Dispatch,
  dispatchJob,
  observeDispatch,
  type PollingWorker,
} from "../services/jobs/dispatch";
import { type Command, commandSchema } from "./commands";
import { notRegistered } from "./heartbeat";
import { inputSchema, presentInputs, presentResume, resumeSchema } from "./job-inputs";
import { outputPrefix } from "./output-prefix";

const pollBody = z.object({
  worker_id: z.string().min(1).max(128),
  wait_seconds: z.number().min(0).default(0),
  lease_token: z
    .string()
    .min(32)
    .max(128)
    .nullish()
    .describe(
      "a random secret, new for each job. If the poll that starts an attempt sends a token, " +
        "later requests must send the same token: requests for the attempt's inputs, uploads, " +
        "log and result, and further polls for the attempt",
    ),
});

const noJob = z.object({ job_id: z.null(), commands: z.array(commandSchema).optional() });

const anyObject = z.record(z.string(), z.unknown());

/** A job, as the worker receives it (contract.md, next_job). */
const dispatchedSchema = z
  .object({
    job_id: z.string(),
    job_type: z.enum(JOB_TYPES),
    user_id: z.string().describe("the tenant"),
    payload: anyObject,
    params: anyObject,
    attempt: z.int(),
    timeout_s: z.int(),
    output_ids: z.record(z.string(), z.string()).describe("ids of what this attempt creates"),
    inputs: z.array(inputSchema),
    uploads: z.object({
      artifacts_uri: z.string().nullable(),
      logs_uri: z.string(),
      artifacts_url: z.string().describe("PUT the artifact's files below this URL"),
      checkpoints_url: z
        .string()
        .describe("PUT checkpoints below this URL; later attempts can resume from them"),
      log_url: z.string().describe("PATCH the log to this URL"),
      log_max_bytes: z.int(),
    }),
    serving_token: z
      .string()
      .optional()
      .describe("for a deploy job: its server must refuse requests without this bearer token"),
    resume_from: resumeSchema.nullable().describe("an earlier attempt's checkpoint"),
  })
  .meta({ id: "HandedJob" });

export function nextJobRoute(ctx: Context, scheduler: Scheduler): Route {
  return route({
    method: "POST",
    paths: ["/api/workers/next_job", "/worker/next_job"],
    scope: "worker",
    outsideConnectionQueue: true,
    fairShare: true,
    skipsRateLimit: true,
    operationId: "nextJob",
    tag: "Worker protocol",
    summary: "Poll for a job",
    description:
      "Until the worker delivers a result, polling again returns the same job and attempt.",
    body: {
      schema: pollBody,
      examples: {
        specification: { worker_id: "gpu-box-1" },
        long_poll: { worker_id: "gpu-box-1", wait_seconds: 1 },
      },
    },
    responses: {
      200: {
        description: "a job, or `{job_id: null}`",
        schema: z.union([dispatchedSchema, noJob]),
      },
    },
    errorCodes: { 404: ["worker_not_registered"], 429: ["rate_limited"] },
    async handle({ body, request, reply, principal }) {
      const { signal } = ctx.waitingRequests.register(request, principal, reply);
      const { job, commands } = await nextJob(ctx, scheduler, {
        workerId: body.worker_id,
        userId: principal.userId,
        keyId: principal.keyId,
        leaseToken: body.lease_token ?? null,
        boundKeyId: restrictingKeyId(principal),
        address: plainAddress(request.ip),
        waitS: Math.min(body.wait_seconds, ctx.config.http.maxPollS),
        signal,
      });
      if (job) {
        const { userId } = principal;
        return await ctx.connectionQueues.worker.run(userId, () => present(ctx, job));
      }
      return { job_id: null, ...(commands.length > 0 ? { commands } : {}) };
    },
  });
}

interface Poll extends WorkerCall, Omit<PollingWorker, "pollSeq"> {
  /** The address of the caller. */
  address: string;
  waitS: number;
  /** Aborts when the response can't be delivered any more. */
  signal: AbortSignal;
}

const MAX_PAUSE_MS = 1_000;

interface Polled {
  job?: Dispatch;
  commands: Command[];
}

const NOTHING: Polled = { commands: [] };

async function nextJob(ctx: Context, scheduler: Scheduler, poll: Poll): Promise<Polled> {
  const { workerId, waitS, signal } = poll;
  const deadline = ctx.clock.nowMs() + waitS * 1000;
  const inQueue = <T>(work: () => Promise<T>): Promise<T> =>
    ctx.connectionQueues.worker.run(poll.userId, work);
  const offer = await inQueue(() => offerWorker(ctx.pool, poll));
  if (!offer) throw notRegistered(workerId);
  let hasWaited = false;
  let woken = offer.status !== "idle" || offer.draining;
  // False if, as far as this poll knows, no attempt is assigned to the worker. The SQL of
  // `dispatch` is then skipped.
  let mayHold = offer.holds;
  for (;;) {
    const waitMs = Math.max(0, deadline - ctx.clock.nowMs());
    const { keyId, leaseToken } = poll;
    const worker = { workerId, keyId, leaseToken, pollSeq: offer.poll_seq };
    const waiting = ctx.longPolls.wait(poll.userId, worker, waitMs, signal);
    try {
      if (signal.aborted) return await abandon(ctx, poll, offer);
      const pollSeq = hasWaited ? offer.poll_seq : null;
      const held = mayHold && (await inQueue(() => dispatch(ctx, { ...poll, pollSeq })));
      if (held) {
        if (!held.job) await pause(deadline - ctx.clock.nowMs(), signal);
        return held;
      }
      // `longPolls.wait` was called before this read. So if an assignment or a drain comes too late
      // for the read, it wakes the poll.
      const look = (): Promise<Offer | undefined> =>
        woken ? findOffer(ctx.pool, workerId) : findOfferAndFit(ctx.pool, workerId, poll.userId);
      const now = await inQueue(look);
      woken = true;
      const { wanted = [] } = now ?? {};
      const mayFit = wanted === null || wanted.length > 0;
      if (mayFit) await scheduler.assignTo(workerId, wanted);
      if (mayFit || (!mayHold && now?.holds)) {
        mayHold = true;
        continue;
      }
      if (now && now.poll_seq !== offer.poll_seq) {
        // The worker has sent a later poll, which may wait in another process: pass the wake-up on.
        ctx.signals.assigned([workerId]);
        return NOTHING;
      }
      if (now?.draining) {
        if (offer.draining) await pause(deadline - ctx.clock.nowMs(), signal);
        return { commands: [{ type: "drain" }] };
      }
      if (deadline <= ctx.clock.nowMs()) return NOTHING;
      const why = await countWaiting(ctx, waiting.untilEnded());
      hasWaited = true;
      // Don't read again: if an assignment or a drain came just now, the worker's next poll finds
      // it.
      if (typeof why === "object") return { job: why, commands: [] };
      if (why === "superseded" || why === "time-out") return NOTHING;
      mayHold = why === "assigned";
    } finally {
      waiting.leave();
    }
  }
}

/** Ends a poll whose response can't be delivered. */
async function abandon(
  { pool }: Context,
  { workerId, signal }: Poll,
  offer: Offer,
): Promise<Polled> {
  if (signal.reason !== "closing") await withdrawOffer(pool, workerId, offer.available_until);
  if (signal.reason === "key-revoked") throw invalidKey();
  return NOTHING;
}

/**
 * Returns the job that is assigned to the worker. If that job was cancelled, returns the command to
 * cancel it. Undefined if no job is assigned.
 */
async function dispatch(ctx: Context, worker: PollingWorker): Promise<Polled | undefined> {
  const job = await dispatchJob(ctx.pool, worker);
  if (!job) return undefined;
  if (job.is_cancelled) return { commands: [{ type: "cancel_job", job_id: job.job_id }] };
  observeDispatch(ctx.metrics, job);
  return { job, commands: [] };
}

async function countWaiting<T>({ metrics }: Context, woken: Promise<T>): Promise<T> {
  metrics.waitingPolls.inc();
  return await woken.finally(() => metrics.waitingPolls.dec());
}

/** Waits, so that a worker that ignores `drain` or `cancel_job` does not poll in a tight loop. */
async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  if (waitMs <= 0) return;
  await sleep(Math.min(waitMs, MAX_PAUSE_MS), undefined, { signal }).catch(() => undefined);
}

async function present(ctx: Context, job: Dispatch): Promise<z.infer<typeof dispatchedSchema>> {
  const prefix = outputPrefix(job);
  const [inputs, resumeFrom] = await Promise.all([
    presentInputs(ctx, job),
    presentResume(ctx, job),
  ]);
  return {
    job_id: job.job_id,
    job_type: job.job_type,
    user_id: job.user_id,
    payload: job.payload,
    params: job.params,
    attempt: job.attempt,
    timeout_s: job.timeout_s,
    output_ids: job.output_ids,
    inputs,
    uploads: {
      artifacts_uri: prefix ? storeUri(prefix) : null,
      logs_uri: storeUri(logKey(job.job_id, job.attempt)),
      artifacts_url: `/worker/jobs/${job.job_id}/artifacts/`,
      checkpoints_url: `/worker/jobs/${job.job_id}/checkpoints/`,
      log_url: `/worker/jobs/${job.job_id}/log`,
      log_max_bytes: ctx.config.jobs.maxLogBytes,
    },
    ...(job.serving_token === null ? {} : { serving_token: job.serving_token }),
    resume_from: resumeFrom,
  };
}
