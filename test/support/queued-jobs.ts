import type { QueuedJob } from "../../core/fleet/matching";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { execute, type Queryable } from "../../platform/postgres/pool";

/** Inserts jobs directly, each with its first attempt queued. Their tenants must exist. */
export async function queueJobs(db: Queryable, queue: QueuedJob[]): Promise<void> {
  const rows = queue.map((each) => ({ ...each, shape: requirementGroupOf(each.userId, each) }));
  await execute(
    db,
    `with q as (select * from jsonb_array_elements($1::jsonb) as each(q)),
     j as (
       insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags,
                         priority, timeout_s, max_attempts, req_gpu_count, req_gpu_tokens,
                         req_memory_gb, req_tags, req_avoid, rate_card, request_id)
       select q->>'jobId', q->>'userId', 'k', q->>'jobType', '{}', '{}', '{}', '{}', (q->>'priority')::int,
              60, 3, (q->>'gpuCount')::int, array(select jsonb_array_elements_text(q->'gpuTokens')),
              (q->>'memoryGb')::int, array(select jsonb_array_elements_text(q->'tags')),
              array(select jsonb_array_elements_text(q->'avoid')), '{}', 'r'
       from q)
     insert into attempts (job_id, attempt, shape, priority, queued_at)
     select q->>'jobId', 1, q->>'shape', (q->>'priority')::int,
            timestamptz '2026-01-01' + (q->>'queuedAt')::int * interval '1 minute' from q`,
    [JSON.stringify(rows)],
  );
}
