import { BOOTSTRAP_STEPS, type BootstrapStep } from "../../core/fleet/bootstrap";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { HELD_ATTEMPT } from "./eligibility-sql";

const LAST_STEP: BootstrapStep = "ready";

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
  /**
   * The key that sent the request; for a session, the key from which the session was created. Forge
   * makes a separate key for the worker. The worker's key expires when `keyId` expires, and is
   * revoked when `keyId` is revoked.
   */
  keyId: string;
}

export async function countBootstraps(db: Queryable, userId: string): Promise<number> {
  const row = await maybeOne<{ n: number }>(
    db,
    "select count(*) as n from workers where status = 'bootstrapping' and user_id = $1",
    [userId],
  );
  return row?.n ?? 0;
}

/**
 * Inserts a worker to be set up; the row is the outbox entry that starts the set-up. Replaces a
 * decommissioned worker of the same owner. Returns false if another worker has this id.
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

/**
 * Requests another bootstrap (a run) of an SSH worker that is in `error` or `dead`. Returns the
 * number of the new run, or undefined if the worker is in another state.
 */
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

/** A worker whose bootstrap workflow is to be started. */
export interface DueBootstrap {
  worker_id: string;
  bootstrap_run: number;
}

/**
 * Claims workers whose bootstrap workflow is to be started. If the workflow has not started the
 * current run, the worker can be claimed again after one second. If it has, the worker can be
 * claimed again after `afterS` seconds, because the workflow may have been terminated since.
 */
export async function claimBootstraps(db: Queryable, afterS: number, limit: number) {
  return await all<DueBootstrap>(
    db,
    `with due as (
       select worker_id from workers
       where status = 'bootstrapping' and (bootstrap_seen_at is null
         or bootstrap_begun < bootstrap_run and bootstrap_seen_at < now() - interval '1 second'
         or bootstrap_seen_at < now() - make_interval(secs => $1))
       limit $2 for no key update skip locked)
     update workers w set bootstrap_seen_at = now() from due where w.worker_id = due.worker_id
     returning w.worker_id, w.bootstrap_run`,
    [afterS, limit],
  );
}

/**
 * Returns the worker that a run sets up. Undefined if a later run has replaced this one, or if the
 * worker is no longer bootstrapping.
 */
export async function findBootstrapping(db: Queryable, workerId: string, run: number) {
  return await maybeOne<SshWorkerRow>(
    db,
    `select * from workers where worker_id = $1 and bootstrap_run = $2 and status = 'bootstrapping'`,
    [workerId, run],
  );
}

/** Records that the workflow has started this run, and resets the steps. Idempotent. */
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

/**
 * Trusts a host's key if none was trusted before. Returns the trusted key; null if a later run has
 * replaced this one, because that run may set up another machine.
 */
export async function trustHostKey(
  db: Queryable,
  { worker_id: workerId, bootstrap_run: run }: Pick<SshWorkerRow, "worker_id" | "bootstrap_run">,
  shown: string,
): Promise<string | null> {
  const row = await maybeOne<{ ssh_host_key: string | null }>(
    db,
    `update workers set ssh_host_key = coalesce(ssh_host_key, $2) where worker_id = $1
       and bootstrap_run = $3 returning ssh_host_key`,
    [workerId, shown, run],
  );
  return row?.ssh_host_key ?? null;
}

/**
 * Records the key that Forge made for the worker, and binds the worker to this key. Replaces an
 * earlier key.
 */
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

/** Whether a heartbeat arrived after step `agent` started. */
export async function hasSentHeartbeat(db: Queryable, workerId: string): Promise<boolean> {
  const row = await maybeOne(
    db,
    `select from workers w join bootstrap_steps s using (worker_id)
     where w.worker_id = $1 and s.step = 'agent' and w.last_heartbeat_at > s.started_at`,
    [workerId],
  );
  return row !== undefined;
}

/**
 * Ends a run that succeeded: completes its last step and puts the worker into service. The caller
 * has locked the worker.
 *
 * @returns false if a later run has replaced this one, or if the worker is not bootstrapping.
 */
export async function finishBootstrap(
  db: Queryable,
  workerId: string,
  run: number,
): Promise<boolean> {
  const changed = await execute(
    db,
    `with finished as (
       update workers w set status_reason = null, error_code = null, strikes = 0,
              strikes_since = null, struck_by = '{}',
              status = case when exists (${HELD_ATTEMPT}) then 'busy' else 'idle' end
       where worker_id = $1 and bootstrap_run = $2 and status = 'bootstrapping'
       returning worker_id)
     update bootstrap_steps s set status = 'completed', ended_at = now() from finished
     where s.worker_id = finished.worker_id and step = '${LAST_STEP}'`,
    [workerId, run],
  );
  return changed === 1;
}

/** Whether `finishBootstrap` has ended this run. */
export async function isBootstrapFinished(
  db: Queryable,
  workerId: string,
  run: number,
): Promise<boolean> {
  const row = await maybeOne(
    db,
    `select from workers join bootstrap_steps s using (worker_id)
     where worker_id = $1 and bootstrap_run = $2 and s.step = '${LAST_STEP}'
       and s.status = 'completed'`,
    [workerId, run],
  );
  return row !== undefined;
}

/**
 * Ends a failed run: sets the worker to `error` with the step's error, or with a default text if
 * the step has none. The caller has locked the worker.
 */
export async function failBootstrap(
  db: Queryable,
  workerId: string,
  run: number,
  step: BootstrapStep,
): Promise<boolean> {
  const changed = await execute(
    db,
    `with failed as (
       update bootstrap_steps s set status = 'failed', ended_at = coalesce(ended_at, now()),
              error = coalesce(error, 'the step timed out, or its server died')
       from workers w
       where w.worker_id = $1 and w.bootstrap_run = $2 and w.status = 'bootstrapping'
         and s.worker_id = w.worker_id and s.step = $3
       returning s.worker_id, error)
     update workers w set status = 'error', error_code = 'bootstrap_failed',
            status_reason = left('bootstrap failed at step "' || $3 || '": ' || f.error, 4000)
     from failed f
     where w.worker_id = f.worker_id and bootstrap_run = $2 and status = 'bootstrapping'`,
    [workerId, run, step],
  );
  return changed === 1;
}
