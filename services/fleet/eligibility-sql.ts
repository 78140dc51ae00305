import { MEMORY_SHARE } from "../../core/jobs/requirements";

/**
 * The most kinds of a tenant's idle workers that one pass considers. Workers of one kind fit the same jobs. If a tenant
 * has more kinds, each pass considers a random choice of them. This slows down only that tenant.
 */
const KINDS = 100;

/** SQL: `fits` of core/jobs/requirements.ts for a worker `w` and requirements `q`, regardless of owner. */
const MEETS_REQUIREMENTS = `w.gpu_count >= q.req_gpu_count
             and w.gpu_memory_gb >= q.req_memory_gb * ${MEMORY_SHARE}::float8
             and w.gpu_tokens @> q.req_gpu_tokens and w.tags @> q.req_tags
             and coalesce(q.job_type = any(w.job_types), true)`;

/** SQL: `MEETS_REQUIREMENTS`, and the worker's owner admits the tenant. */
export const ADMITS_AND_FITS = `coalesce(q.user_id = any(w.tenants), true) and ${MEETS_REQUIREMENTS}`;

/** SQL: `mayRun` of core/fleet/matching.ts for one worker `w`. */
export const MAY_RUN = `(w.shared or w.user_id = q.user_id) and ${ADMITS_AND_FITS}
                     and w.worker_id <> all (q.req_avoid)`;

/**
 * SQL: whether worker `w` can get a job. Checks for held attempts, too: if a worker that holds one were wrongly `idle`,
 * every pass would assign it a second attempt and fail on the unique index.
 */
export const IDLE = `w.status = 'idle' and w.available_until > now() and not w.draining and not exists (
  select from attempts held
  where held.worker_id = w.worker_id and held.state in ('assigned', 'running'))`;

/** SQL: the requirements of a job `j`. @param avoid the column with the workers that must not run the job. */
export const needsOf = (avoid = "j.req_avoid"): string =>
  `j.user_id, j.job_type, j.req_gpu_count, j.req_gpu_tokens, j.req_memory_gb, j.req_tags, ${avoid}`;

/** SQL: the kinds of workers that a pass considers, from `all_kinds`. */
export const SOME_KINDS = `
  select * from (
    select *, row_number() over (partition by user_id order by random()) as nth from all_kinds) k
  where shared or nth <= ${KINDS}`;
