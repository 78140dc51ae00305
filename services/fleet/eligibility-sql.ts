import { MEMORY_SHARE } from "../../core/jobs/requirements";

/**
 * A kind is a group of idle workers that fit the same jobs. A pass considers at most this many
 * kinds of each tenant's own workers. If a tenant has more, each pass considers a random choice of
 * them, so its jobs may need more passes. Other tenants are not slowed down.
 */
const KINDS = 100;

/**
 * SQL: whether worker `w` meets requirements `q`, by the rule of `fits` in
 * core/jobs/requirements.ts. Does not check whether the job avoids the worker, who owns the worker,
 * or whether the owner admits the tenant.
 */
const MEETS_REQUIREMENTS = `w.gpu_count >= q.req_gpu_count
             and w.gpu_memory_gb >= q.req_memory_gb * ${MEMORY_SHARE}::float8
             and w.gpu_tokens @> q.req_gpu_tokens and w.tags @> q.req_tags
             and coalesce(q.job_type = any(w.job_types), true)`;

/** SQL: `MEETS_REQUIREMENTS`, and the worker's owner admits the tenant. */
export const ADMITS_AND_FITS = `coalesce(q.user_id = any(w.tenants), true) and ${MEETS_REQUIREMENTS}`;

/** SQL: `mayRun` of core/fleet/matching.ts for a worker `w` and requirements `q`. */
export const MAY_RUN = `(w.shared or w.user_id = q.user_id) and ${ADMITS_AND_FITS}
                     and w.worker_id <> all (q.req_avoid)`;

/** SQL: whether worker `w` accepts jobs. */
export const ACCEPTS_JOBS = "w.status = 'idle' and w.available_until > now() and not w.draining";

/** SQL: the attempt that worker `w` holds. */
export const HELD_ATTEMPT =
  "select from attempts held where held.worker_id = w.worker_id and held.state in ('assigned', 'running')";

/**
 * SQL: whether worker `w` can get a job: it accepts jobs and holds no attempt. The status alone is
 * not enough: if a worker that holds an attempt were wrongly `idle`, every pass would assign a
 * second attempt to the worker, and fail on the unique index.
 */
export const IDLE = `${ACCEPTS_JOBS} and not exists (${HELD_ATTEMPT})`;

/** SQL: the requirements of a job `j`. @param avoid SQL: the workers that must not run the job. */
export const needsOf = (avoid = "j.req_avoid"): string =>
  `j.user_id, j.job_type, j.req_gpu_count, j.req_gpu_tokens, j.req_memory_gb, j.req_tags, ${avoid}`;

/** SQL: the kinds of workers that a pass considers, from `all_kinds`. */
export const SOME_KINDS = `
  select * from (
    select *, row_number() over (partition by user_id order by random()) as nth from all_kinds) k
  where shared or nth <= ${KINDS}`;
