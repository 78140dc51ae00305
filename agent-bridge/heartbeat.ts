import { z } from "zod";
import { ForgeError } from "../core/errors";
import type { Context } from "../infra/context";
import { findHeldAttempt } from "../infra/database/attempts";
import { reportProgress } from "../infra/database/jobs";
import { recordHeartbeat } from "../infra/database/workers";
import type { Route } from "../infra/http/app";
import { parse } from "../infra/http/validation";

const amount = z.number().min(0).nullish();

/** spec.md 2.4. `timestamp` is never judged, and `status` informs, but for `error`. */
const heartbeat = z.object({
  worker_id: z.string().min(1).max(128),
  gpu: z.object({ util: amount, mem_used: amount, mem_total: amount }).optional(),
  status: z.string().max(64).optional(),
  reason: z.string().max(1024).optional(),
  /** What the worker runs and how far it is, where it tells. */
  job_id: z.string().max(128).nullish(),
  attempt: z.int().nullish(),
  progress: z.number().min(0).max(1).nullish(),
});

type Command = { type: "job_lost"; job_id: string };

export function heartbeatRoute(ctx: Context): Route {
  return {
    method: "POST",
    paths: ["/api/workers/heartbeat", "/worker/heartbeat"],
    scope: "worker",
    async handle(request) {
      const given = parse(heartbeat, request.body);
      const worker = await recordHeartbeat(ctx.pool, {
        workerId: given.worker_id,
        userId: request.principal.userId,
        util: given.gpu?.util ?? null,
        memUsed: given.gpu?.mem_used ?? null,
        memTotal: given.gpu?.mem_total ?? null,
        errorReason: given.status === "error" ? (given.reason ?? "reported by the worker") : null,
      });
      if (!worker) throw notRegistered(given.worker_id);
      // Alive again, and perhaps parked all the while.
      if (worker.was === "dead") ctx.signals.queueChanged();
      return {
        worker_id: given.worker_id,
        status: worker.status,
        commands: await commandsFor(ctx, given),
      };
    },
  };
}

/** The agent answers this by registering again. */
export function notRegistered(workerId: string): ForgeError {
  const message = `worker "${workerId}" is not registered with this key's owner`;
  return new ForgeError(404, "worker_not_registered", message, "worker_id");
}

async function commandsFor(ctx: Context, given: z.output<typeof heartbeat>): Promise<Command[]> {
  if (!given.job_id) return [];
  const held = await findHeldAttempt(ctx.pool, given.worker_id);
  const stillHeld =
    held?.job_id === given.job_id && (given.attempt == null || held.attempt === given.attempt);
  if (!stillHeld) return [{ type: "job_lost", job_id: given.job_id }];
  if (given.progress != null) {
    await reportProgress(ctx.pool, given.worker_id, given.job_id, given.progress);
  }
  return [];
}
