import { z } from "zod";
import { restrictingKeyId } from "../core/accounts/permissions";
import { ForgeError } from "../core/errors";
import { reportedMetrics } from "../core/jobs/reported-metrics";
import { WORKER_STATUSES } from "../core/jobs/states";
import { type Route, route } from "../platform/http/route";
import type { Context } from "../services/context";
import { commandSchema, commandsFor } from "./commands";
import { compareDeploymentHealth } from "./deployment-health";
import type { HeartbeatWriter } from "./heartbeat-writer";

const amount = z.number().min(0).nullish();

/** Upper limit for a reported GPU value. Keeps sums and averages over many workers finite. */
const MAX_GPU_VALUE = 1_000_000;
const bounded = (value: number | null | undefined): number | null =>
  value == null ? null : Math.min(value, MAX_GPU_VALUE);

/**
 * The heartbeat of spec.md 2.4. The server ignores `timestamp`, and every `status` except `error`.
 */
const heartbeat = z.object({
  worker_id: z.string().min(1).max(128),
  gpu: z.object({ util: amount, mem_used: amount, mem_total: amount }).optional(),
  status: z.string().max(64).optional(),
  timestamp: z.unknown().optional(),
  reason: z.string().max(1024).optional(),
  /** The attempt that the worker runs, and its progress. Workers may omit these fields. */
  job_id: z.string().max(128).nullish(),
  attempt: z.int().min(1).max(1_000).nullish(),
  progress: z.number().min(0).max(1).nullish(),
  metrics: z.unknown().optional().describe("numbers that the job reported, by name"),
  deployments: z
    .array(z.string().max(128))
    .max(1_000)
    .optional()
    .describe("deployments that the worker serves"),
  unhealthy_deployments: z
    .array(z.string().max(128))
    .max(1_000)
    .optional()
    .describe("those of `deployments` that do not answer now"),
});

export function heartbeatRoute(ctx: Context, writer: HeartbeatWriter): Route {
  return route({
    method: "POST",
    paths: ["/api/workers/heartbeat", "/worker/heartbeat"],
    scope: "worker",
    outsideConnectionQueue: true,
    skipsRateLimit: true,
    batchedKeyLookup: true,
    operationId: "heartbeat",
    tag: "Worker protocol",
    summary: "Send a heartbeat and receive commands",
    body: {
      schema: heartbeat,
      examples: {
        specification: {
          worker_id: "gpu-box-1",
          gpu: { util: 93.5, mem_used: 61.2, mem_total: 80 },
          status: "busy",
          timestamp: "2026-11-21T10:00:00Z",
        },
      },
    },
    responses: {
      200: {
        description: "the worker's status, and commands for it",
        schema: z.object({
          worker_id: z.string(),
          status: z.enum(WORKER_STATUSES),
          commands: z.array(commandSchema),
        }),
      },
    },
    errorCodes: { 404: ["worker_not_registered"] },
    async handle({ body: given, principal }) {
      const state = await writer.record({
        workerId: given.worker_id,
        userId: principal.userId,
        boundKeyId: restrictingKeyId(principal),
        util: bounded(given.gpu?.util),
        memUsed: bounded(given.gpu?.mem_used),
        memTotal: bounded(given.gpu?.mem_total),
        errorReason: given.status === "error" ? (given.reason ?? "reported by the worker") : null,
        jobId: given.job_id ?? null,
        saysNoJob: given.job_id === null,
        attempt: given.attempt ?? null,
        progress: given.progress ?? null,
        metrics: reportedMetrics(given.metrics),
      });
      if (!state) throw notRegistered(given.worker_id);
      const toStop = await compareDeploymentHealth(ctx, state, given);
      return {
        worker_id: given.worker_id,
        status: state.status,
        commands: commandsFor(state, given, toStop),
      };
    },
  });
}

/** The agent registers again when it gets this error. */
export function notRegistered(workerId: string): ForgeError {
  const message = `worker "${workerId}" is not registered, or not with this key`;
  return new ForgeError(404, "worker_not_registered", message, "worker_id");
}
