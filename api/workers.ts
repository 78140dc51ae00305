import type { Context } from "../infra/context";
import { listWorkers, type WorkerRow } from "../infra/database/workers";
import type { Route } from "../infra/http/app";
import { viewerOf } from "./viewer";

export function workerRoutes(ctx: Context): Route[] {
  return [
    {
      method: "GET",
      paths: ["/api/workers"],
      scope: "user",
      handle: async (request) => {
        const workers = await listWorkers(ctx.pool, viewerOf(request.principal));
        return { workers: workers.map(presentWorker) };
      },
    },
  ];
}

function presentWorker(worker: WorkerRow) {
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
