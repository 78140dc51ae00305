import { z } from "zod";
import { ARTIFACT_FORMS, artifactPrefix, storeUri } from "../core/artifacts";
import { MAX_WAIT_SECONDS } from "../core/constants";
import type { Context } from "../infra/context";
import { type HandOut, handOut } from "../infra/database/attempts";
import { offerWorker, withdrawOffer } from "../infra/database/workers";
import type { ForgeRequest, Route } from "../infra/http/app";
import { parse } from "../infra/http/validation";
import { notRegistered } from "./heartbeat";
import type { Scheduler } from "./scheduler";
import type { Waiters } from "./waiters";

const pollBody = z.object({
  worker_id: z.string().min(1).max(128),
  wait_seconds: z.number().min(0).default(0),
});

/** After a poll ends, its worker may still be given a job for so long: it will ask again soon. */
const OFFER_S = 30;

export function nextJobRoute(ctx: Context, scheduler: Scheduler, waiters: Waiters): Route {
  return {
    method: "POST",
    paths: ["/api/workers/next_job", "/worker/next_job"],
    scope: "worker",
    async handle(request) {
      const given = parse(pollBody, request.body);
      const { signal: hungUp, release } = watchForHangUp(request);
      try {
        const job = await nextJob(ctx, scheduler, waiters, {
          workerId: given.worker_id,
          userId: request.principal.userId,
          waitS: Math.min(given.wait_seconds, MAX_WAIT_SECONDS),
          hungUp,
        });
        return job ? present(job) : { job_id: null };
      } finally {
        release();
      }
    },
  };
}

interface Poll {
  workerId: string;
  userId: string;
  waitS: number;
  /** Aborts when nobody waits for the answer any more. */
  hungUp: AbortSignal;
}

async function nextJob(
  ctx: Context,
  scheduler: Scheduler,
  waiters: Waiters,
  { workerId, userId, waitS, hungUp }: Poll,
): Promise<HandOut | undefined> {
  const deadline = ctx.clock.nowMs() + waitS * 1000;
  const offer = await offerWorker(ctx.pool, workerId, userId, waitS + OFFER_S);
  if (!offer) throw notRegistered(workerId);
  let nudged = offer.status !== "idle";
  for (;;) {
    const waiter = waiters.park(workerId, Math.max(0, deadline - ctx.clock.nowMs()), hungUp);
    try {
      if (hungUp.aborted) {
        await withdrawOffer(ctx.pool, workerId, offer.available_until);
        return undefined;
      }
      const job = await handOut(ctx.pool, workerId);
      if (job) return job;
      if (!nudged) {
        nudged = true;
        await scheduler.nudge();
        continue;
      }
      if (deadline <= ctx.clock.nowMs()) return undefined;
      const why = await waiter.woken;
      if (why === "superseded" || why === "closing") return undefined;
    } finally {
      waiter.leave();
    }
  }
}

/**
 * A signal that aborts when the client's connection closes: a client that vanished must not be given a
 * job. Connections are kept alive over many polls, so each poll lets go of the one it came by.
 */
function watchForHangUp(request: ForgeRequest): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const { socket } = request.raw;
  const onClose = (): void => controller.abort();
  if (socket.destroyed) onClose();
  socket.once("close", onClose);
  return { signal: controller.signal, release: () => socket.off("close", onClose) };
}

function present(job: HandOut) {
  const outputId = job.output_ids[ARTIFACT_FORMS[job.job_type].idField];
  return {
    job_id: job.job_id,
    job_type: job.job_type,
    payload: job.payload,
    params: job.params,
    attempt: job.attempt,
    timeout_s: job.timeout_s,
    output_ids: job.output_ids,
    inputs: ["dataset_uri", "dataset_id", "checkpoint_id"]
      .filter((param) => typeof job.payload[param] === "string")
      .map((param) => ({ param, value: job.payload[param] })),
    uploads: {
      artifacts_uri: outputId ? storeUri(artifactPrefix(job.job_type, outputId)) : null,
      logs_uri: storeUri(`artifacts/logs/${job.job_id}/attempt-${job.attempt}.log`),
    },
    resume_from: null,
  };
}
