import { BOOTSTRAP_STEPS, type BootstrapStep } from "../../core/fleet/bootstrap";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

export interface SshWorkerRow {
  worker_id: string;
  user_id: string;
  shared: boolean;
  tags: string[];
  gpu_count: number;
  ssh_host: string;
  ssh_port: number;
  ssh_user: string;
  ssh_key_path: string;
  ssh_host_key: string | null;
  bootstrap_run: number;
  bootstrap_key_id: string | null;
  added_by_key_id: string | null;
}

export interface SshRegistration {
  workerId: string;
  userId: string;
  shared: boolean;
  tags: string[];
  gpuType: string;
  gpuCount: number;
  gpuMemoryGb: number;
  gpuTokens: string[];
  host: string;
  port: number;
  user: string;
  keyPath: string;
  hostKey: string | null;
  provider: string | null;
  metadata: Record<string, unknown> | null;
  /** The key that asks for it; the worker's own ends with it. */
  keyId: string;
}

/** How many workers of a tenant are being set up. */
export async function countBootstraps(db: Queryable, userId: string): Promise<number> {
  const row = await maybeOne<{ n: number }>(
    db,
    "select count(*) as n from workers where status = 'bootstrapping' and user_id = $1",
    [userId],
  );
  return row?.n ?? 0;
}

/**
 * A worker that is yet to be set up, and the debt to start that. False: there is one of this id, other
 * than one of the same owner's that was decommissioned.
 */
export async function insertSshWorker(db: Queryable, given: SshRegistration): Promise<boolean> {
  const changed = await execute(
    db,
    `insert into workers (worker_id, user_id, shared, tags, gpu_name, gpu_count, gpu_memory_gb,
                          gpu_tokens, ssh_host, ssh_port, ssh_user, ssh_key_path, ssh_host_key,
                          provider, metadata, added_by_key_id, status, bootstrap_run)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
             'bootstrapping', 1)
     on conflict (worker_id) do update set
       shared = excluded.shared, tags = excluded.tags, gpu_name = excluded.gpu_name,
       gpu_count = excluded.gpu_count, gpu_memory_gb = excluded.gpu_memory_gb,
       gpu_tokens = excluded.gpu_tokens, ssh_host = excluded.ssh_host, ssh_port = excluded.ssh_port,
       ssh_user = excluded.ssh_user, ssh_key_path = excluded.ssh_key_path,
       ssh_host_key = excluded.ssh_host_key, provider = excluded.provider,
       metadata = excluded.metadata, added_by_key_id = excluded.added_by_key_id,
       bound_key_id = null, status = 'bootstrapping', status_reason = null,
       error_code = null, draining = false, decommissioned_at = null, strikes = 0,
       strikes_since = null, struck_by = '{}', bootstrap_run = workers.bootstrap_run + 1
     where workers.decommissioned_at is not null and workers.user_id = excluded.user_id`,
    [
      given.workerId,
      given.userId,
      given.shared,
      given.tags,
      given.gpuType,
      given.gpuCount,
      given.gpuMemoryGb,
      given.gpuTokens,
      given.host,
      given.port,
      given.user,
      given.keyPath,
      given.hostKey,
      given.provider,
      given.metadata,
      given.keyId,
    ],
  );
  return changed === 1;
}

/** Another bootstrap of a worker that was set up over SSH and is out of service. Its run, if it may be. */
export async function requestBootstrap(
  db: Queryable,
  workerId: string,
  { hostKey, keyId }: { hostKey: string | null; keyId: string },
): Promise<number | undefined> {
  const row = await maybeOne<{ bootstrap_run: number }>(
    db,
    `update workers set status = 'bootstrapping', status_reason = null, error_code = null,
            draining = false, bootstrap_run = bootstrap_run + 1,
            ssh_host_key = coalesce($2, ssh_host_key), added_by_key_id = $3
     where worker_id = $1 and ssh_host is not null and decommissioned_at is null
       and (status in ('error', 'dead'))
     returning bootstrap_run`,
    [workerId, hostKey, keyId],
  );
  return row?.bootstrap_run;
}

/** Workers whose workflow has not begun their run, or was not looked at for a while. */
export async function claimBootstraps(
  db: Queryable,
  afterS: number,
): Promise<{ worker_id: string; bootstrap_run: number }[]> {
  return await all(
    db,
    `update workers set bootstrap_seen_at = now()
     where status = 'bootstrapping' and (bootstrap_seen_at is null
       or bootstrap_begun < bootstrap_run and bootstrap_seen_at < now() - interval '1 second'
       or bootstrap_seen_at < now() - make_interval(secs => $1))
     returning worker_id, bootstrap_run`,
    [afterS],
  );
}

/** The worker that a run sets up; undefined when that run is of no interest any more. */
export async function findBootstrapping(
  db: Queryable,
  workerId: string,
  run: number,
): Promise<SshWorkerRow | undefined> {
  return await maybeOne<SshWorkerRow>(
    db,
    `select * from workers where worker_id = $1 and bootstrap_run = $2 and status = 'bootstrapping'`,
    [workerId, run],
  );
}

/** The workflow has this run: its steps begin anew. */
export async function beginBootstrap(db: Queryable, workerId: string, run: number): Promise<void> {
  await execute(
    db,
    `with begun as (
       update workers set bootstrap_begun = $2
       where worker_id = $1 and bootstrap_run = $2 and bootstrap_begun < $2 returning worker_id)
     insert into bootstrap_steps (worker_id, step, position)
     select worker_id, step, position from begun, unnest($3::text[]) with ordinality steps (step, position)
     on conflict (worker_id, step) do update set status = 'pending', tries = 0, started_at = null,
       ended_at = null, log = '', error = null`,
    [workerId, run, BOOTSTRAP_STEPS.map(({ name }) => name)],
  );
}

export async function startStep(
  db: Queryable,
  workerId: string,
  step: BootstrapStep,
): Promise<void> {
  await execute(
    db,
    `update bootstrap_steps set status = 'running', tries = tries + 1, started_at = now(),
            ended_at = null, error = null
     where worker_id = $1 and step = $2`,
    [workerId, step],
  );
}

/** Most that is kept of what one step said, in characters. */
const LOG_LIMIT = 65_536;

/** Adds to what a step said. */
export async function appendStepLog(
  db: Queryable,
  workerId: string,
  step: BootstrapStep,
  text: string,
): Promise<void> {
  await execute(
    db,
    `update bootstrap_steps set log = right(log || $3, ${LOG_LIMIT}) where worker_id = $1 and step = $2`,
    [workerId, step, text],
  );
}

export async function endStep(
  db: Queryable,
  workerId: string,
  step: BootstrapStep,
  error: string | null,
): Promise<void> {
  await execute(
    db,
    `update bootstrap_steps set status = case when $3::text is null then 'completed' else 'failed' end,
            error = $3, ended_at = now()
     where worker_id = $1 and step = $2`,
    [workerId, step, error],
  );
}

export interface StepRow {
  step: BootstrapStep;
  status: "pending" | "running" | "completed" | "failed";
  tries: number;
  started_at: Date | null;
  ended_at: Date | null;
  log: string;
  error: string | null;
}

export async function listSteps(db: Queryable, workerId: string): Promise<StepRow[]> {
  return await all<StepRow>(
    db,
    "select * from bootstrap_steps where worker_id = $1 order by position",
    [workerId],
  );
}

/** Trusts a host's key, if none was trusted before; the one that is trusted now. */
export async function trustHostKey(
  db: Queryable,
  workerId: string,
  shown: string,
): Promise<string | null> {
  const row = await maybeOne<{ ssh_host_key: string | null }>(
    db,
    `update workers set ssh_host_key = coalesce(ssh_host_key, $2) where worker_id = $1
     returning ssh_host_key`,
    [workerId, shown],
  );
  return row?.ssh_host_key ?? null;
}

/** Notes the worker's own key, in place of one that was made before, and binds the worker to it. */
export async function setBootstrapKey(
  db: Queryable,
  workerId: string,
  keyId: string,
): Promise<void> {
  await execute(
    db,
    "update workers set bootstrap_key_id = $2, bound_key_id = $2 where worker_id = $1",
    [workerId, keyId],
  );
}

/** Whether the agent that the last steps started has been heard since. */
export async function isHeard(db: Queryable, workerId: string): Promise<boolean> {
  const row = await maybeOne(
    db,
    `select from workers w join bootstrap_steps s using (worker_id)
     where w.worker_id = $1 and s.step = 'agent' and w.last_heartbeat_at > s.started_at`,
    [workerId],
  );
  return row !== undefined;
}

/** The last step: in service from here on. */
export async function finishBootstrap(
  db: Queryable,
  workerId: string,
  run: number,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update workers set status = 'idle', status_reason = null, error_code = null, strikes = 0,
            strikes_since = null, struck_by = '{}'
     where worker_id = $1 and bootstrap_run = $2 and status = 'bootstrapping'`,
    [workerId, run],
  );
  return changed === 1;
}

/** Out of service, with what the step said last. A step that was cut off did not get to say its end. */
export async function failBootstrap(
  db: Queryable,
  workerId: string,
  run: number,
  step: BootstrapStep,
): Promise<boolean> {
  const changed = await execute(
    db,
    `with failed as (
       update bootstrap_steps set status = 'failed', ended_at = coalesce(ended_at, now()),
              error = coalesce(error, 'it took too long, or its server died')
       where worker_id = $1 and step = $3 returning worker_id, error)
     update workers w set status = 'error', error_code = 'bootstrap_failed',
            status_reason = left('bootstrap failed at step "' || $3 || '": ' || f.error, 4000)
     from failed f
     where w.worker_id = f.worker_id and bootstrap_run = $2 and status = 'bootstrapping'`,
    [workerId, run, step],
  );
  return changed === 1;
}
