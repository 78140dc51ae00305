import { DEFAULT_RATE_CARD } from "../../core/billing/rate-card";
import type { Queryable } from "../../platform/postgres/pool";
import { execute } from "../../platform/postgres/pool";

/** Columns of a job, with the values that matter to a test. */
export interface SeededJob {
  job_id: string;
  user_id: string;
  job_type?: string;
  status?: string;
  created_by?: string;
  tags?: string[];
  notes?: string | null;
  error_code?: string | null;
  created_at?: string;
  started_at?: string | null;
  completed_at?: string | null;
}

const DEFAULTS = {
  job_type: "audit",
  status: "pending",
  created_by: "k",
  tags: [],
  notes: null,
  error_code: null,
  created_at: new Date().toISOString(),
  started_at: null,
  completed_at: null,
};

/** Inserts jobs without attempts: no process works on them. */
export async function seedJobs(db: Queryable, jobs: SeededJob[]): Promise<void> {
  await execute(
    db,
    `insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, notes,
                       priority, timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb,
                       rate_card, request_id, status, result, error_code, created_at, started_at,
                       completed_at)
     select job_id, user_id, created_by, job_type, '{"dataset_uri": "s3://bucket/key"}', '{}', '{}',
            array(select json_array_elements_text(tags)), notes, 0, 60, 3, 0, '{}', 0, $2, 'r', status,
            case when status = 'completed' then '{}'::jsonb end, error_code, created_at, started_at,
            completed_at
     from json_to_recordset($1) j (job_id text, user_id text, created_by text, job_type text, tags json,
       notes text, status text, error_code text, created_at timestamptz, started_at timestamptz,
       completed_at timestamptz)`,
    [JSON.stringify(jobs.map((job) => ({ ...DEFAULTS, ...job }))), DEFAULT_RATE_CARD],
  );
}
