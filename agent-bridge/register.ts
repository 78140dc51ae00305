import { z } from "zod";
import { gpuTokens } from "../core/jobs/requirements";
import { WORKER_STATUSES } from "../core/jobs/states";
import { Throttle } from "../platform/concurrency/throttle";
import { idempotencyHeader } from "../platform/http/openapi";
import { type Route, route } from "../platform/http/route";
import { parse } from "../platform/http/validation";
import { newId } from "../platform/ids";
import { plainAddress } from "../platform/net/address-policy";
import type { Context } from "../services/context";
import { findOfferAndFit } from "../services/fleet/assignment";
import { registerWorker } from "../services/fleet/register-worker";
import {
  planAnswer,
  planBootstrap,
  registerBySsh,
  type SshRegistration,
  sshAnswer,
  sshRegistration,
  tagsField,
  workerIdField,
} from "./register-ssh";

/**
 * Limits the rate of registrations, because a whole fleet may start at once. A registration waits
 * at most 13 s: 5 s because of this limit, and 8 s in a busy process (platform/http/fair-share.ts).
 * The agent's request times out after 30 s.
 */
const REGISTRATIONS = { perSecond: 10, burst: 200, maxWaitMs: 5_000, maxWaiting: 2_000 };

/**
 * The agent form of spec.md 2.4. Unknown fields are ignored, so that an agent may be newer than the
 * server.
 */
const agentForm = z.object({
  worker_id: workerIdField.optional(),
  gpu: z.object({
    name: z.string().min(1).max(256),
    memory_gb: z.number().min(0).max(100_000),
    count: z.int().min(0).max(1024).optional(),
  }),
  tags: tagsField,
  job_types: z.array(z.string().max(64)).max(64).nullish().describe("the only types it takes"),
  tenants: z.array(z.string().max(64)).max(1_000).nullish().describe("the only tenants served"),
  version: z.string().max(64).optional(),
  boot_id: z.string().max(128).optional(),
  /**
   * The job and attempt that the worker still runs, if any. After a restart (`boot_id` is new or
   * missing), any other attempt that is assigned to the worker is marked lost.
   */
  job_id: z.string().max(128).nullish(),
  attempt: z.int().min(1).max(1_000).nullish(),
});

type Registration = z.output<typeof agentForm>;

const agentAnswer = z.object({
  worker_id: z.string(),
  status: z.enum(WORKER_STATUSES),
  heartbeat_interval_s: z.number(),
  heartbeat_timeout_s: z.number(),
});

/** Only the SSH form has `ssh_host`. */
const isSshForm = (body: unknown): boolean =>
  typeof body === "object" && body !== null && "ssh_host" in body;

export function registerRoute(ctx: Context): Route {
  return route<unknown, Registration | SshRegistration>({
    method: "POST",
    paths: ["/api/workers/register", "/worker/register"],
    scope: "worker",
    skipsRateLimit: true,
    outsideConnectionQueue: true,
    fairShare: true,
    throttle: new Throttle(REGISTRATIONS, ctx.clock.nowMs),
    operationId: "registerWorker",
    tag: "Worker protocol",
    summary: "Register a worker or register it again",
    description:
      "An agent registers its worker. With `ssh_host`, Forge sets the machine up instead: it connects by " +
      "SSH, installs what is missing, and starts the agent; this needs a key of scope `user`.",
    headers: idempotencyHeader,
    body: {
      schema: z.union([agentForm, sshRegistration]),
      parse: (body) => (isSshForm(body) ? parse(sshRegistration, body) : parse(agentForm, body)),
      examples: {
        specification: {
          worker_id: "gpu-box-1",
          gpu: { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 },
          tags: ["cluster-a"],
          version: "1.0",
        },
      },
    },
    responses: {
      201: {
        description:
          "the worker may poll, at this heartbeat interval; with `ssh_host`, its setup has started",
        schema: z.union([agentAnswer, sshAnswer]),
      },
      200: { description: "with `plan`: what the setup would do", schema: planAnswer },
    },
    errorCodes: {
      409: ["worker_id_taken", "bootstrap_not_configured", "quota_exceeded"],
      429: ["rate_limited"],
    },
    async handle(call) {
      const { body: given, principal, request, reply } = call;
      const inQueue = <T>(work: () => Promise<T>): Promise<T> =>
        ctx.connectionQueues.worker.run(principal.userId, work);
      if ("ssh_host" in given && given.plan) {
        return await inQueue(() => planBootstrap(ctx, call, given));
      }
      reply.code(201);
      if ("ssh_host" in given) return await inQueue(() => registerBySsh(ctx, call, given));
      const workerId = given.worker_id ?? newId("wkr");
      const worker = workerOf(given, workerId, plainAddress(request.ip));
      const { status, offer } = await inQueue(async () => ({
        status: await registerWorker(ctx, principal, worker, given),
        offer: await findOfferAndFit(ctx.pool, workerId, principal.userId),
      }));
      request.log.info({ worker_id: workerId, version: given.version }, "worker registered");
      if (offer && offer.wanted?.length !== 0) ctx.signals.queueChanged();
      return {
        worker_id: workerId,
        status,
        heartbeat_interval_s: ctx.config.fleet.heartbeatIntervalS,
        heartbeat_timeout_s: ctx.config.fleet.heartbeatTimeoutS,
      };
    },
  });
}

/** The worker's properties, from its registration request. */
const workerOf = ({ gpu, ...given }: Registration, workerId: string, address: string) => ({
  workerId,
  bootId: given.boot_id ?? null,
  version: given.version ?? null,
  tags: given.tags,
  gpuName: gpu.name,
  // A CPU agent registers {name: "cpu", memory_gb: 0}. Any other agent has one GPU unless it sends
  // `count`.
  gpuCount: gpu.count ?? (gpu.name.toLowerCase() === "cpu" ? 0 : 1),
  gpuMemoryGb: gpu.memory_gb,
  gpuTokens: gpuTokens(gpu.name),
  jobTypes: given.job_types ?? null,
  tenants: given.tenants ?? null,
  address,
});
