import { ADMITS_AND_FITS } from "./eligibility-sql";

/** SQL: one row per kind of workers `w`. Workers of a kind fit the same jobs. `user_id` is "" if they are shared. */
export const kindsOf = (condition: string): string => `
  select shared, case when shared then '' else user_id end as user_id, tenants, job_types, gpu_count,
         gpu_memory_gb, gpu_tokens, tags, array_agg(worker_id) as ids
  from workers w where ${condition} group by 1, 2, 3, 4, 5, 6, 7, 8`;

/**
 * SQL: the rows of `needs` (requirements of jobs) that a kind of workers fits, by the rule of `mayRun` in
 * core/fleet/matching.ts: a shared worker may run the jobs of all tenants, any other worker only those of its owner.
 */
export const fitting = (needs: string, kinds: string): string => `
  select q.* from ${needs} q join ${kinds} w on w.user_id = q.user_id
  where ${ADMITS_AND_FITS} and not w.ids <@ q.req_avoid
  union
  select q.* from ${needs} q cross join ${kinds} w
  where w.shared and ${ADMITS_AND_FITS} and not w.ids <@ q.req_avoid`;
