import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { execute } from "../../platform/postgres/pool";
import type { Forge } from "./forge";
import { AUDIT, untilEnded } from "./jobs";
import { seedJobs } from "./seeded-jobs";

/** How many objects of each kind a tenant has. */
export interface Amounts {
  jobs: number;
  workers: number;
  logBytes: number;
  /** Number of artifacts that were made from one artifact. */
  lineage: number;
}

export interface Seeded {
  /** An ended job whose log ends with `LAST_LINE`. */
  jobId: string;
  artifactId: string;
}

export const LAST_LINE = "the last line of all";
/** Every hundredth job has this tag, beginning with the newest one. */
export const RARE_TAG = "rare";
const seededId = (n: number): string => `job_${String(n).padStart(26, "0")}`;
/** The newest job with the rare tag. */
export const RARE_JOB = seededId(1);

/**
 * Seeds a tenant. A worker runs only one job, which produces an artifact. All other rows are
 * inserted by SQL.
 */
export async function seedTenant(forge: Forge, amounts: Amounts): Promise<Seeded> {
  const seeded = await makeOne(forge);
  writeLog(forge, seeded.jobId, amounts.logBytes);
  await seedManyJobs(forge, amounts.jobs);
  await seedWorkers(forge, amounts.workers);
  await seedDescendants(forge, seeded.artifactId, amounts.lineage);
  await execute(forge.ctx.pool, "analyze");
  return seeded;
}

async function makeOne(forge: Forge): Promise<Seeded> {
  const worker = await forge.worker("hand");
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await worker.log(dispatched, "the first line of all\n");
  await worker.complete(dispatched);
  const { result } = await untilEnded(forge.user, jobId);
  return { jobId, artifactId: String(result?.dataset_id) };
}

function writeLog({ stack }: Forge, jobId: string, bytes: number): void {
  const file = join(stack.storeDir, "artifacts", "logs", jobId, "attempt-1.log");
  const line = (n: number): string =>
    `${n} step of the training, loss 0.${n % 1000}, 12.5 rows/s\n`;
  const lines: string[] = [];
  for (let size = 0, n = 0; size < bytes; n++) {
    const text = line(n);
    lines.push(text);
    size += text.length;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${lines.join("")}${LAST_LINE}\n`);
}

/** Rows per statement. A statement with many more rows would exceed the statement timeout. */
const AT_ONCE = 5_000;

/** Inserts jobs, the newest one first. The jobs were created one minute apart. */
async function seedManyJobs({ ctx, user }: Forge, count: number): Promise<void> {
  const { user_id } = await user.get<{ user_id: string }>("/api/auth/ping");
  const types = ["generate", "audit", "distill", "train", "evaluate"];
  for (let first = 1; first <= count; first += AT_ONCE) {
    const numbers = Array.from(
      { length: Math.min(AT_ONCE, count + 1 - first) },
      (_, n) => first + n,
    );
    const jobs = numbers.map((n) => {
      const at = new Date(Date.now() - n * 60_000).toISOString();
      return {
        job_id: seededId(n),
        user_id,
        job_type: types[n % types.length] ?? "audit",
        status: "failed",
        error_code: "job_error",
        tags: n % 100 === 1 ? [RARE_TAG] : [],
        created_at: at,
        completed_at: at,
      };
    });
    await seedJobs(ctx.pool, jobs);
  }
}

async function seedWorkers({ ctx }: Forge, count: number): Promise<void> {
  await execute(
    ctx.pool,
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, status,
                          last_heartbeat_at)
     select 'box-' || n, user_id, false, 'H100', 8, 80, '{h100}', 'idle', now()
     from generate_series(1, $1::int) n, (select user_id from jobs limit 1) tenant`,
    [count],
  );
}

/** Inserts copies of an artifact. Each copy names that artifact as its source. */
async function seedDescendants({ ctx }: Forge, id: string, count: number): Promise<void> {
  await execute(
    ctx.pool,
    `insert into artifacts (artifact_id, user_id, job_id, attempt, artifact_type, kind, uri, created_by, created_at,
                            source_jobs, source_artifacts, size_bytes, manifest, registered_at)
     select 'ds_' || lpad(n::text, 26, '0'), user_id, job_id, attempt, artifact_type, kind, uri, created_by,
            created_at + n * interval '1 second', source_jobs, array[$1], size_bytes, manifest, registered_at
     from artifacts, generate_series(1, $2::int) n where artifact_id = $1`,
    [id, count],
  );
}
