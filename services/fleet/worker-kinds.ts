import { ADMITS_AND_FITS } from "./eligibility-sql";

/**
 * SQL: the workers `w` that meet `condition`, one row per kind. Workers of the same kind fit the
 * same jobs. `user_id` is "" for a kind of shared workers.
 */
export const kindsOf = (condition: string): string => `
  select shared, case when shared then '' else user_id end as user_id, tenants, job_types, gpu_count,
         gpu_memory_gb, gpu_tokens, tags, array_agg(worker_id) as ids
  from workers w where ${condition} group by 1, 2, 3, 4, 5, 6, 7, 8`;

/**
 * SQL: selects the job requirements in `needs` that at least one worker in `kinds` fits. The rule
 * is the same as in `mayRun` (core/fleet/matching.ts). A shared worker may run the jobs of all
 * tenants that its owner admits. Any other worker may run only its owner's jobs.
 */
export const fitting = (needs: string, kinds: string): string => `
  select q.* from ${needs} q join ${kinds} w on w.user_id = q.user_id
  where ${ADMITS_AND_FITS} and not w.ids <@ q.req_avoid
  union
  select q.* from ${needs} q cross join ${kinds} w
  where w.shared and ${ADMITS_AND_FITS} and not w.ids <@ q.req_avoid`;
