import { z } from "zod";
import { NotFound } from "../core/errors";
import { WORKER_STATUSES } from "../core/states";
import type { Context } from "../infra/context";
import { findWorker, listWorkers, type WorkerRow } from "../infra/database/workers";
import { listOf, pageOf, pageQuery, presentPage } from "../infra/http/lists";
import { viewerOf } from "../infra/http/principal";
import { type Route, route } from "../infra/http/route";
import { tenantFilter, tenantQuery } from "./tenant-filter";

const workerSchema = z
  .object({
    worker_id: z.string(),
    ssh_host: z.string().nullable(),
    gpu_count: z.int(),
    gpu_type: z.string(),
    status: z.enum(WORKER_STATUSES),
    status_reason: z.string().nullable(),
    current_job_id: z.string().nullable(),
    last_heartbeat: z.number().nullable().describe("seconds since the epoch"),
    gpu: z.object({ name: z.string(), memory_gb: z.number() }),
    tags: z.array(z.string()),
    version: z.string().nullable(),
    util: z.number().nullable().describe("percent"),
    mem_used: z.number().nullable().describe("GB"),
    mem_total: z.number().nullable().describe("GB"),
    jobs_handled: z.int(),
    shared: z.boolean().describe("serves every tenant"),
  })
  .meta({ id: "Worker" });

export function workerRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/workers"],
      scope: "user",
      operationId: "listWorkers",
      tag: "Workers",
      summary: "List workers, the last registered first",
      query: z.strictObject({ ...pageQuery, ...tenantQuery }),
      answers: {
        200: { description: "a page of workers", schema: listOf("workers", workerSchema) },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const rows = await listWorkers(ctx.pool, tenantFilter(principal, query.user_id), page);
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
      answers: { 200: { description: "the worker", schema: workerSchema } },
      refusals: { 404: ["worker_not_found"] },
      async handle({ params: { worker_id: workerId = "" }, principal }) {
        const worker = await findWorker(ctx.pool, workerId, viewerOf(principal));
        if (!worker) throw new NotFound("worker", workerId, "worker_id");
        return presentWorker(worker);
      },
    }),
  ];
}

function presentWorker(worker: WorkerRow): z.infer<typeof workerSchema> {
  return {
    worker_id: worker.worker_id,
    ssh_host: worker.ssh_host,
    gpu_count: worker.gpu_count,
    gpu_type: worker.gpu_name,
    status: worker.status,
    status_reason: worker.status_reason,
    current_job_id: worker.current_job_id,
    last_heartbeat: worker.last_heartbeat_at ? worker.last_heartbeat_at.getTime() / 1000 : null,
    gpu: { name: worker.gpu_name, memory_gb: worker.gpu_memory_gb },
    tags: worker.tags,
    version: worker.version,
    util: worker.util,
    mem_used: worker.mem_used,
    mem_total: worker.mem_total,
    jobs_handled: worker.jobs_handled,
    shared: worker.shared,
  };
}
