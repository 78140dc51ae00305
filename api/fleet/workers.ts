import { z } from "zod";
import { type Principal, type TenantScope, tenantScopeOf } from "../../core/accounts/permissions";
import { Conflict, NotFound } from "../../core/errors";
import { WORKER_STATUSES } from "../../core/jobs/states";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { type Route, route } from "../../platform/http/route";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../../services/accounts/audit";
import type { Context } from "../../services/context";
import { listSteps } from "../../services/fleet/bootstrap-steps";
import { decommissionWorker } from "../../services/fleet/decommission-worker";
import {
  findShownWorker,
  findWorker,
  listWorkers,
  type ShownWorkerRow,
} from "../../services/fleet/worker-list";
import { drainWorker, resetWorker, undrainWorker } from "../../services/fleet/workers";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";
import { searchQuery } from "../search-query";
import {
  presentWorker,
  presentWorkerDetail,
  workerDetailSchema,
  workerSchema,
} from "./present-worker";

const NOT_FOUND = { 404: ["worker_not_found"] };

export function workerRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/workers"],
      scope: "user",
      operationId: "listWorkers",
      tag: "Workers",
      summary: "List your own and shared workers, newest first",
      sharesResult: true,
      query: z.strictObject({
        ...pageQuery,
        status: z.array(z.enum(WORKER_STATUSES)).min(1).max(16).optional().describe("any of these"),
        gpu: z.string().min(1).max(128).optional().describe("a part of the GPU's name"),
        ...searchQuery("a part of a worker's id or of a tag"),
        ...tenantQuery,
      }),
      responses: {
        200: { description: "a page of workers", schema: listOf("workers", workerSchema) },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const tenantScope = tenantFilter(principal, query.user_id);
        const filter = { statuses: query.status, gpu: query.gpu, text: query.q };
        const rows = await listWorkers(ctx.pool, tenantScope, filter, page);
        return presentPage("workers", rows, page, (row) => row.worker_id, presentWorker);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/workers/:worker_id"],
      scope: "user",
      operationId: "getWorker",
      tag: "Workers",
      summary: "Read a worker",
      responses: { 200: { description: "the worker", schema: workerDetailSchema } },
      errorCodes: NOT_FOUND,
      async handle({ params, principal }) {
        const { worker_id: id = "" } = params;
        const worker = await findShownWorker(ctx.pool, id, tenantScopeOf(principal));
        if (!worker) throw new NotFound("worker", id, "worker_id");
        const steps = worker.is_own ? await listSteps(ctx.pool, id) : [];
        return presentWorkerDetail(worker, steps);
      },
    }),
    route({
      method: "POST",
      paths: ["/api/workers/:worker_id/drain"],
      scope: "user",
      operationId: "drainWorker",
      tag: "Workers",
      summary: "Drain a worker: it finishes its job and takes no other",
      description:
        "The worker's waiting poll ends. Draining ends with `undrain`, or when the worker registers with " +
        "another `boot_id`.",
      body: { schema: z.strictObject({}), examples: {}, optional: true },
      responses: { 202: { description: "the worker", schema: workerSchema } },
      errorCodes: NOT_FOUND,
      handle: async (call) =>
        await changeWorker(ctx, call, "worker_drained", drainWorker, (id) =>
          ctx.signals.wake([id]),
        ),
    }),
    route({
      method: "POST",
      paths: ["/api/workers/:worker_id/undrain"],
      scope: "user",
      operationId: "undrainWorker",
      tag: "Workers",
      summary: "Stop draining a worker: it takes jobs again",
      description:
        "If the agent has already exited, start it again. A worker that is not draining does not change.",
      body: { schema: z.strictObject({}), examples: {}, optional: true },
      responses: { 200: { description: "the worker", schema: workerSchema } },
      errorCodes: NOT_FOUND,
      handle: async (call) =>
        await changeWorker(ctx, call, "worker_undrained", undrainWorker, () =>
          ctx.signals.queueChanged(),
        ),
    }),
    route({
      method: "POST",
      paths: ["/api/workers/:worker_id/reset"],
      scope: "admin",
      operationId: "resetWorker",
      tag: "Workers",
      summary: "Reset a worker in `error`: it takes jobs again",
      description: "This also ends draining. A worker can also leave `error` by registering again.",
      body: { schema: z.strictObject({}), examples: {}, optional: true },
      responses: { 200: { description: "the worker", schema: workerSchema } },
      errorCodes: { ...NOT_FOUND, 409: ["worker_not_set_up"] },
      async handle({ params }) {
        const { worker_id: workerId } = await requireWorker(ctx, params, null);
        if (!(await resetWorker(ctx.pool, workerId))) {
          const message = `worker "${workerId}" is not set up: it must register, or be set up again`;
          throw new Conflict("worker_not_set_up", message);
        }
        ctx.signals.queueChanged();
        return presentWorker(await requireWorker(ctx, params, null));
      },
    }),
    route({
      method: "DELETE",
      paths: ["/api/workers/:worker_id"],
      scope: "user",
      operationId: "decommissionWorker",
      tag: "Workers",
      summary: "Decommission a worker",
      description:
        "Takes effect at once: the worker's running attempt is lost and its job queued again, Forge tells " +
        "the agent to exit, and a worker that was set up over SSH loses its key. Drain the worker first to let " +
        "its job end. If the agent is started again, it registers the worker again.",
      responses: {
        200: {
          description: "the worker is decommissioned",
          schema: z.object({ worker_id: z.string(), decommissioned: z.literal(true) }),
        },
      },
      errorCodes: NOT_FOUND,
      async handle({ params, principal, request }) {
        const worker = await requireWorker(ctx, params, tenantScopeOf(principal), true);
        const { worker_id: workerId } = worker;
        // Idempotent: a repeated call changes nothing.
        if (worker.decommissioned_at === null) {
          await decommissionWorker(ctx, workerId, principal);
          request.log.info({ worker_id: workerId }, "worker decommissioned");
        }
        return { worker_id: workerId, decommissioned: true };
      },
    }),
  ];
}

/**
 * Changes a worker and writes the audit entry in one transaction. Calls `signal` after the commit.
 * Returns the changed worker.
 */
async function changeWorker(
  ctx: Context,
  { params, principal }: { params: Record<string, string>; principal: Principal },
  action: string,
  change: (db: Queryable, workerId: string) => Promise<void>,
  signal: (workerId: string) => void,
) {
  const tenantScope = tenantScopeOf(principal);
  const worker = await requireWorker(ctx, params, tenantScope);
  const { worker_id: workerId, user_id: userId } = worker;
  await transaction(ctx.pool, async (db) => {
    await change(db, workerId);
    await recordAudit(db, { userId, action, subject: workerId, principal });
  });
  signal(workerId);
  return presentWorker(await requireWorker(ctx, params, tenantScope));
}

export async function requireWorker(
  ctx: Context,
  { worker_id: workerId = "" }: Record<string, string>,
  tenantScope: TenantScope,
  includeDecommissioned = false,
): Promise<ShownWorkerRow> {
  const worker = await findWorker(ctx.pool, workerId, tenantScope, includeDecommissioned);
  if (!worker) throw new NotFound("worker", workerId, "worker_id");
  return worker;
}
