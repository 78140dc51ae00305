import { z } from "zod";
import { BOOTSTRAP_STEPS } from "../../core/fleet/bootstrap";
import { WORKER_ERROR_CODES, WORKER_STATUSES } from "../../core/jobs/states";
import { timestamp } from "../../core/timestamp";
import type { StepRow } from "../../services/fleet/bootstrap-steps";
import type { ShownWorkerRow } from "../../services/fleet/worker-list";
import { nullableNumber, nullableText } from "../fields";

/** A worker, as spec.md 2.4 and contract.md define it. */
export const workerSchema = z
  .object({
    worker_id: z.string(),
    ssh_host: nullableText.describe(
      "the host, if the worker was set up over SSH; null for another tenant's worker",
    ),
    gpu_count: z.int(),
    gpu_type: z.string(),
    status: z.enum(WORKER_STATUSES),
    status_reason: nullableText,
    error_code: z.enum(WORKER_ERROR_CODES).nullable().describe("why the worker is in `error`"),
    draining: z.boolean().describe("true: finishes its job and takes no other"),
    current_job_id: nullableText,
    last_heartbeat: nullableNumber.describe("seconds since the epoch"),
    gpu: z.object({ name: z.string(), memory_gb: z.number() }),
    tags: z.array(z.string()),
    job_types: z.array(z.string()).nullable().describe("the only types it takes; null: all"),
    version: nullableText,
    util: nullableNumber.describe("percent"),
    mem_used: nullableNumber.describe("GB"),
    mem_total: nullableNumber.describe("GB"),
    jobs_handled: z.int(),
    shared: z.boolean().describe("true: serves all tenants"),
  })
  .meta({ id: "Worker" });

const bootstrapSchema = z
  .object({
    ssh_port: z.int(),
    ssh_user: z.string(),
    ssh_key_path: z.string(),
    ssh_host_key: nullableText.describe("the expected fingerprint of the host's key"),
    provider: nullableText,
    metadata: z.record(z.string(), z.unknown()).nullable(),
    run: z.int().describe("how often the worker was set up"),
    steps: z.array(
      z.object({
        step: z.enum(BOOTSTRAP_STEPS.map(({ name }) => name)),
        does: z.string(),
        status: z.enum(["pending", "running", "completed", "failed"]),
        tries: z.int(),
        started_at: timestamp.nullable(),
        ended_at: timestamp.nullable(),
        error: nullableText,
        log: z.string().describe("the last 64 KiB of the machine's output"),
      }),
    ),
  })
  .meta({ id: "Bootstrap" });

export const workerDetailSchema = workerSchema
  .extend({ bootstrap: bootstrapSchema.nullable().describe("null: the agent registered itself") })
  .meta({ id: "WorkerDetail" });

export function presentWorker(worker: ShownWorkerRow): z.infer<typeof workerSchema> {
  return {
    worker_id: worker.worker_id,
    // Other tenants must not learn a machine's host, or what went wrong with its jobs.
    ssh_host: worker.is_own ? worker.ssh_host : null,
    gpu_count: worker.gpu_count,
    gpu_type: worker.gpu_name,
    status: worker.status,
    status_reason: worker.is_own ? worker.status_reason : null,
    error_code: worker.status === "error" ? worker.error_code : null,
    draining: worker.draining,
    current_job_id: worker.current_job_id,
    last_heartbeat: worker.last_heartbeat_at ? worker.last_heartbeat_at.getTime() / 1000 : null,
    gpu: { name: worker.gpu_name, memory_gb: worker.gpu_memory_gb },
    tags: worker.tags,
    job_types: worker.job_types,
    version: worker.version,
    util: worker.util,
    mem_used: worker.mem_used,
    mem_total: worker.mem_total,
    jobs_handled: worker.jobs_handled,
    shared: worker.shared,
  };
}

/** The worker with its bootstrap, if it was set up over SSH. */
export function presentWorkerDetail(
  worker: ShownWorkerRow,
  steps: StepRow[],
): z.infer<typeof workerDetailSchema> {
  return {
    ...presentWorker(worker),
    bootstrap: worker.is_own && worker.ssh_host ? presentBootstrap(worker, steps) : null,
  };
}

function presentBootstrap(
  worker: ShownWorkerRow,
  rows: StepRow[],
): z.infer<typeof bootstrapSchema> {
  return {
    ssh_port: worker.ssh_port ?? 22,
    ssh_user: worker.ssh_user ?? "",
    ssh_key_path: worker.ssh_key_path ?? "",
    ssh_host_key: worker.ssh_host_key,
    provider: worker.provider,
    metadata: worker.metadata,
    run: worker.bootstrap_run,
    steps: BOOTSTRAP_STEPS.map(({ name, does }) => {
      const row = rows.find(({ step }) => step === name);
      return {
        step: name,
        does,
        status: row?.status ?? "pending",
        tries: row?.tries ?? 0,
        started_at: row?.started_at?.toISOString() ?? null,
        ended_at: row?.ended_at?.toISOString() ?? null,
        error: row?.error ?? null,
        log: row?.log ?? "",
      };
    }),
  };
}
