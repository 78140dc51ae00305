import type { WorkerStatus } from "../../core/states";
import { listPage, type Page, Where, type WithPosition } from "./pages";
import { all, execute, maybeOne, type Queryable } from "./pool";
import type { Viewer } from "./viewer";

export interface WorkerRow {
  worker_id: string;
  user_id: string;
  shared: boolean;
  boot_id: string | null;
  version: string | null;
  tags: string[];
  gpu_name: string;
  gpu_count: number;
  gpu_memory_gb: number;
  ssh_host: string | null;
  status: WorkerStatus;
  status_reason: string | null;
  heartbeat_seq: number;
  last_heartbeat_at: Date | null;
  util: number | null;
  mem_used: number | null;
  mem_total: number | null;
  jobs_handled: number;
  current_job_id: string | null;
}

const WITH_JOB = `workers w left join attempts a
  on a.worker_id = w.worker_id and a.state in ('assigned', 'running')`;

/** One page of the workers that this viewer owns, the latest to be registered first. */
export async function listWorkers(
  db: Queryable,
  viewer: Viewer,
  page: Page,
): Promise<WithPosition<WorkerRow>[]> {
  return await listPage<WorkerRow>(db, {
    select: "w.*, a.job_id as current_job_id",
    from: WITH_JOB,
    order: ["w.registered_at", "w.worker_id"],
    where: new Where().also(viewer, (user) => `w.user_id = ${user}`),
    page,
  });
}

export async function findWorker(
  db: Queryable,
  workerId: string,
  viewer: Viewer,
): Promise<WorkerRow | undefined> {
  return await maybeOne<WorkerRow>(
    db,
    `select w.*, a.job_id as current_job_id from ${WITH_JOB}
     where w.worker_id = $1 and ($2::text is null or w.user_id = $2)`,
    [workerId, viewer],
  );
}

export async function lockWorker(
  db: Queryable,
  workerId: string,
): Promise<Omit<WorkerRow, "current_job_id"> | undefined> {
  return await maybeOne(db, "select * from workers where worker_id = $1 for no key update", [
    workerId,
  ]);
}

export interface Registration {
  workerId: string;
  userId: string;
  shared: boolean;
  bootId: string | null;
  version: string | null;
  tags: string[];
  gpuName: string;
  gpuCount: number;
  gpuMemoryGb: number;
  gpuTokens: string[];
}

/** Registers or registers again, under one owner. Registering counts as being heard. */
export async function upsertWorker(
  db: Queryable,
  given: Registration,
): Promise<{ status: WorkerStatus } | undefined> {
  return await maybeOne<{ status: WorkerStatus }>(
    db,
    `insert into workers as w (worker_id, user_id, shared, boot_id, version, tags, gpu_name,
                               gpu_count, gpu_memory_gb, gpu_tokens, status, heartbeat_seq,
                               last_heartbeat_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'idle', 1, now())
     on conflict (worker_id) do update set
       shared = excluded.shared, boot_id = excluded.boot_id, version = excluded.version,
       tags = excluded.tags, gpu_name = excluded.gpu_name, gpu_count = excluded.gpu_count,
       gpu_memory_gb = excluded.gpu_memory_gb, gpu_tokens = excluded.gpu_tokens,
       heartbeat_seq = w.heartbeat_seq + 1, last_heartbeat_at = now(),
       available_until = case when w.boot_id = excluded.boot_id then w.available_until end,
       status_reason = null,
       status = case when exists (select from attempts a where a.worker_id = w.worker_id
                                  and a.state in ('assigned', 'running')) then 'busy' else 'idle' end
     where w.user_id = excluded.user_id
     returning status`,
    [
      given.workerId,
      given.userId,
      given.shared,
      given.bootId,
      given.version,
      given.tags,
      given.gpuName,
      given.gpuCount,
      given.gpuMemoryGb,
      given.gpuTokens,
    ],
  );
}

export interface Heartbeat {
  workerId: string;
  userId: string;
  util: number | null;
  memUsed: number | null;
  memTotal: number | null;
  /** The worker's own word that it can't work. */
  errorReason: string | null;
}

/** Takes a heartbeat; a dead worker that is heard again is alive. */
export async function recordHeartbeat(
  db: Queryable,
  beat: Heartbeat,
): Promise<{ status: WorkerStatus; was: WorkerStatus } | undefined> {
  return await maybeOne(
    db,
    `with before as (select status from workers where worker_id = $1)
     update workers w set heartbeat_seq = heartbeat_seq + 1, last_heartbeat_at = now(),
            util = $3, mem_used = $4, mem_total = $5,
            status_reason = coalesce($6, status_reason),
            status = case when status = 'dead' or status = 'bootstrapping' then 'idle'
                          when $6::text is not null and status = 'idle' then 'error'
                          else status end
     where worker_id = $1 and user_id = $2
     returning status, (select status from before) as was`,
    [beat.workerId, beat.userId, beat.util, beat.memUsed, beat.memTotal, beat.errorReason],
  );
}

/** The worker asks for work and, whenever it is idle, may be given some for so long. */
export async function offerWorker(
  db: Queryable,
  workerId: string,
  userId: string,
  forS: number,
): Promise<{ status: WorkerStatus; available_until: string } | undefined> {
  return await maybeOne(
    db,
    `update workers set available_until = now() + make_interval(secs => $3)
     where worker_id = $1 and user_id = $2 returning status, available_until::text`,
    [workerId, userId, forS],
  );
}

/** The worker hung up: nothing for it until it asks again. If it has done that already, this is void. */
export async function withdrawOffer(
  db: Queryable,
  workerId: string,
  availableUntil: string,
): Promise<void> {
  await execute(
    db,
    `update workers set available_until = null
     where worker_id = $1 and available_until = $2::timestamptz`,
    [workerId, availableUntil],
  );
}

/** The worker delivered: free again, but offered to nobody before it asks. */
export async function releaseWorker(db: Queryable, workerId: string): Promise<void> {
  await execute(
    db,
    `update workers set status = case when status = 'busy' then 'idle' else status end,
            available_until = null, jobs_handled = jobs_handled + 1
     where worker_id = $1`,
    [workerId],
  );
}

/** Workers whose silence is watched: heard at least once and not dead yet. */
export async function listHeartbeats(
  db: Queryable,
): Promise<{ worker_id: string; heartbeat_seq: number }[]> {
  return await all(
    db,
    `select worker_id, heartbeat_seq from workers
     where status in ('idle', 'busy', 'error') and heartbeat_seq > 0`,
  );
}

/** Marks a worker dead if it has not been heard since `seq`. Its offer stands: it may be parked, and revive. */
export async function markDead(
  db: Queryable,
  workerId: string,
  seq: number,
  reason: string,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update workers set status = 'dead', status_reason = $3
     where worker_id = $1 and heartbeat_seq = $2 and status in ('idle', 'busy', 'error')`,
    [workerId, seq, reason],
  );
  return changed === 1;
}

/** Of these workers, those with an assignment waiting to be fetched. */
export async function listAssigned(db: Queryable, workerIds: string[]): Promise<string[]> {
  const rows = await all<{ worker_id: string }>(
    db,
    "select worker_id from attempts where state = 'assigned' and worker_id = any($1)",
    [workerIds],
  );
  return rows.map((row) => row.worker_id);
}
