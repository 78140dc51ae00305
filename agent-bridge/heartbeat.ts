import { z } from "zod";
import { bindingOf } from "../core/accounts/principal";
import { ForgeError } from "../core/errors";
import { reportedMetrics } from "../core/jobs/reported-metrics";
import { WORKER_STATUSES } from "../core/jobs/states";
import { type Route, route } from "../platform/http/route";
import type { Context } from "../services/context";
import { commandSchema, commandsFor } from "./commands";
import { compareDeploymentHealth } from "./deployment-health";
import type { HeartbeatWriter } from "./heartbeat-writer";

const amount = z.number().min(0).nullish();

/** The most that a GPU reports: means and sums over many workers must stay numbers. */
const MOST = 1_000_000;
const bounded = (value: number | null | undefined): number | null =>
  value == null ? null : Math.min(value, MOST);

/** spec.md 2.4. `timestamp` is never judged, and `status` informs, but for `error`. */
const heartbeat = z.object({
  worker_id: z.string().min(1).max(128),
  gpu: z.object({ util: amount, mem_used: amount, mem_total: amount }).optional(),
  status: z.string().max(64).optional(),
  timestamp: z.unknown().optional(),
  reason: z.string().max(1024).optional(),
  /** What the worker runs and how far it is, where it tells. */
  job_id: z.string().max(128).nullish(),
  attempt: z.int().min(1).max(1_000).nullish(),
  progress: z.number().min(0).max(1).nullish(),
  metrics: z.unknown().optional().describe("numbers that its job reported, by name"),
  deployments: z.array(z.string().max(128)).max(1_000).optional().describe("what it serves"),
  unhealthy_deployments: z
    .array(z.string().max(128))
    .max(1_000)
    .optional()
    .describe("of those, what does not answer right now"),
});

export function heartbeatRoute(ctx: Context, pulse: HeartbeatWriter): Route {
  return route({
    method: "POST",
    paths: ["/api/workers/heartbeat", "/worker/heartbeat"],
    scope: "worker",
    waits: true,
    unlimited: true,
    patient: true,
    operationId: "heartbeat",
    tag: "Worker protocol",
    summary: "Tell that a worker lives, and hear what it should do",
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
    answers: {
      200: {
        description: "its status, and commands",
        schema: z.object({
          worker_id: z.string(),
          status: z.enum(WORKER_STATUSES),
          commands: z.array(commandSchema),
        }),
      },
    },
    refusals: { 404: ["worker_not_registered"] },
    async handle({ body: given, principal }) {
      const heard = await pulse.hear({
        workerId: given.worker_id,
        userId: principal.userId,
        boundKeyId: bindingOf(principal),
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
      if (!heard) throw notRegistered(given.worker_id);
      const toStop = await compareDeploymentHealth(ctx, heard, given);
      return {
        worker_id: given.worker_id,
        status: heard.status,
        commands: commandsFor(heard, given, toStop),
      };
    },
  });
}

/** The agent answers this by registering again. */
export function notRegistered(workerId: string): ForgeError {
  const message = `worker "${workerId}" is not registered, or not with this key`;
  return new ForgeError(404, "worker_not_registered", message, "worker_id");
}
