import { z } from "zod";
import { Conflict } from "../core/errors";
import { gpuTokens } from "../core/requirements";
import { WORKER_STATUSES } from "../core/states";
import type { Context } from "../infra/context";
import { transaction } from "../infra/database/transaction";
import { lockWorker, strikeWorker, upsertWorker } from "../infra/database/workers";
import { lockWorkerHolding, loseHeldAttempt } from "../infra/fleet/lose-attempt";
import type { Principal } from "../infra/http/principal";
import { type Route, route } from "../infra/http/route";
import { newId } from "../infra/ids";

const WORKER_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** The agent form of spec.md 2.4; unknown fields are ignored, so that agents may be newer. */
const registration = z.object({
  worker_id: z.string().regex(WORKER_ID, "letters, digits, . _ -; at most 128").optional(),
  gpu: z.object({
    name: z.string().min(1).max(256),
    memory_gb: z.number().min(0).max(100_000),
    count: z.int().min(0).max(1024).optional(),
  }),
  tags: z.array(z.string().max(128)).max(64).default([]),
  version: z.string().max(64).optional(),
  boot_id: z.string().max(128).optional(),
  /** What the worker still runs: naming it keeps the attempt across a restart. */
  job_id: z.string().max(128).nullish(),
  attempt: z.int().min(1).max(1_000).nullish(),
});

type Registration = z.output<typeof registration>;

export function registerRoute(ctx: Context): Route {
  return route({
    method: "POST",
    paths: ["/api/workers/register", "/worker/register"],
    scope: "worker",
    unlimited: true,
    operationId: "registerWorker",
    tag: "Worker protocol",
    summary: "Register a worker, or register it again",
    body: {
      schema: registration,
      examples: {
        specification: {
          worker_id: "gpu-box-1",
          gpu: { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 },
          tags: ["cluster-a"],
          version: "1.0",
        },
      },
    },
    answers: {
      201: {
        description: "it may poll; how often it should be heard",
        schema: z.object({
          worker_id: z.string(),
          status: z.enum(WORKER_STATUSES),
          heartbeat_interval_s: z.number(),
          heartbeat_timeout_s: z.number(),
        }),
      },
    },
    refusals: { 409: ["worker_id_taken"] },
    async handle({ body: given, principal, request }) {
      const workerId = given.worker_id ?? newId("wkr");
      const status = await register(ctx, workerId, given, principal);
      request.log.info({ worker_id: workerId, version: given.version }, "worker registered");
      ctx.signals.queueChanged();
      return {
        worker_id: workerId,
        status,
        heartbeat_interval_s: ctx.config.fleet.heartbeatIntervalS,
        heartbeat_timeout_s: ctx.config.fleet.heartbeatTimeoutS,
      };
    },
  });
}

async function register(
  ctx: Context,
  workerId: string,
  given: Registration,
  principal: Principal,
): Promise<string> {
  const { status, lost } = await transaction(ctx.pool, async (db) => {
    const { lost, keeps } = await loseHeldAttempt(
      db,
      workerId,
      "its worker started again",
      async (held) => {
        const known = await lockWorker(db, workerId);
        const isOwner = known?.user_id === principal.userId;
        const sameBoot = given.boot_id !== undefined && known?.boot_id === given.boot_id;
        const namesIt = given.job_id === held.job_id && given.attempt === held.attempt;
        return isOwner && !sameBoot && !namesIt;
      },
    );
    await lockWorkerHolding(db, workerId, keeps);
    const registered = await upsertWorker(db, {
      workerId,
      userId: principal.userId,
      shared: principal.sharesWorkers,
      bootId: given.boot_id ?? null,
      version: given.version ?? null,
      tags: given.tags,
      gpuName: given.gpu.name,
      // A CPU agent registers {name: "cpu", memory_gb: 0}; any other has one GPU unless it says.
      gpuCount: given.gpu.count ?? (given.gpu.name.toLowerCase() === "cpu" ? 0 : 1),
      gpuMemoryGb: given.gpu.memory_gb,
      gpuTokens: gpuTokens(given.gpu.name),
    });
    if (!registered) {
      throw new Conflict(
        "worker_id_taken",
        `worker "${workerId}" belongs to somebody else`,
        "worker_id",
      );
    }
    // After that: what it is registered with anew must not forget what it just lost.
    const status = lost && (await strikeWorker(db, workerId));
    return { status: status ?? registered.status, lost };
  });
  if (lost) ctx.signals.emit("outbox", { jobId: lost.job_id, attempt: lost.attempt });
  return status;
}
