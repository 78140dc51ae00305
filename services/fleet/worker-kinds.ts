import { SUITS } from "./matching";

/** SQL: workers `w` that fit the same jobs, as one row. `user_id` is "" where they are shared. */
export const kindsOf = (condition: string): string => `
  select shared, case when shared then '' else user_id end as user_id, tenants, job_types, gpu_count,
         gpu_memory_gb, gpu_tokens, tags, array_agg(worker_id) as ids
  from workers w where ${condition} group by 1, 2, 3, 4, 5, 6, 7, 8`;

/**
 * SQL: the rows of `needs` (what jobs need, as their rows have it) that a kind of workers fits: of its owner's
 * jobs, or of everybody's where it is shared. core/fleet/matching.ts's `mayRun`.
 */
export const fitting = (needs: string, kinds: string): string => `
  select q.* from ${needs} q join ${kinds} w on w.user_id = q.user_id
  where ${SUITS} and not w.ids <@ q.req_avoid
  union
  select q.* from ${needs} q cross join ${kinds} w
  where w.shared and ${SUITS} and not w.ids <@ q.req_avoid`;
