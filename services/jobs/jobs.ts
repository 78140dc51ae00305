import type { TenantScope } from "../../core/accounts/permissions";
import type { RateCard } from "../../core/billing/rate-card";
import type { JobType } from "../../core/jobs/job-types";
import type { Requirements } from "../../core/jobs/requirements";
import type { ErrorCode, JobStatus } from "../../core/jobs/states";
import { Parameters } from "../../platform/postgres/parameters";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { rowFilter } from "../../platform/postgres/row-filter";
import { CARD_NOW } from "../billing/rate-cards";
import { ALL_JOBS } from "./all-jobs";
import { START_NUMBER } from "./outbox-entries";

/** A warning about an accepted submission. */
export interface JobWarning {
  code: string;
  param: string;
  message: string;
}

export interface JobRow {
  job_id: string;
  user_id: string;
  created_by: string;
  job_type: JobType;
  payload: Record<string, unknown>;
  resources: Record<string, unknown>;
  params: Record<string, unknown>;
  tags: string[];
  notes: string | null;
  warnings: JobWarning[];
  priority: number;
  timeout_s: number;
  max_attempts: number;
  req_gpu_count: number;
  req_gpu_tokens: string[];
  req_memory_gb: number;
  req_tags: string[];
  req_avoid: string[];
  rate_card: RateCard;
  request_id: string;
  status: JobStatus;
  attempts: number;
  worker_id: string | null;
  progress: number | null;
  result: Record<string, unknown> | null;
  error: string | null;
  error_code: ErrorCode | null;
  artifacts_uri: string | null;
  logs_uri: string | null;
  pipeline_id: string | null;
  pipeline_step: string | null;
  retried_from: string | null;
  /**
   * Set if the job starts another server of a deployment: the deployment, and the number of the
   * placement.
   */
  deployment_id: string | null;
  placement: number | null;
  created_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  cancel_requested_at: Date | null;
  cancelled_by: string | null;
  /** In USD, as estimated at submission; null if no budget required an estimate. */
  expected_cost_usd: number | null;
  /**
   * The activity of the job's workflow that has kept failing or hanging for the longest time.
   * `stuck`, `has_files` and `bill` are set only if the statement selects `DERIVED`.
   */
  stuck?: { activity: string; tries: number; since: string } | null;
  has_files?: boolean | null;
  bill?: { usd: number; state: "accruing" | "final" } | null;
}

/**
 * SQL: columns of a job that are read from other tables: `stuck`, `has_files` (whether Forge's
 * store has files of the artifact; a worker's own bucket may also have files), and `bill` (the
 * billing record).
 */
export const DERIVED = `(
  select jsonb_build_object('activity', activity, 'tries', tries, 'since', since)
  from stuck_writes where workflow_id = 'job:' || job_id and status not in ('completed', 'failed')
  order by since limit 1) as stuck,
  case when artifacts_uri is null then false when artifacts_uri like 'forge:%' then true else coalesce((
    -- This is not an EXISTS, because Postgres would plan one as a scan of all artifacts.
    select r.manifest->'files'->0 is not null from artifacts r where r.job_id = jobs.job_id
    order by 1 desc limit 1), false)
  end as has_files,
  (select jsonb_build_object('usd', total_cost_usd, 'state', state)
   from billing_records b where b.job_id = jobs.job_id) as bill`;

export const requirementsOfJob = (
  job: Pick<
    JobRow,
    "job_type" | "req_gpu_count" | "req_gpu_tokens" | "req_memory_gb" | "req_tags" | "req_avoid"
  >,
): Requirements => ({
  jobType: job.job_type,
  gpuCount: job.req_gpu_count,
  gpuTokens: job.req_gpu_tokens,
  memoryGb: job.req_memory_gb,
  tags: job.req_tags,
  avoid: job.req_avoid,
});

/** A job to insert: the columns of its row, and values for other tables. */
export interface NewJob
  extends Pick<
    JobRow,
    | "job_id"
    | "user_id"
    | "created_by"
    | "job_type"
    | "payload"
    | "resources"
    | "params"
    | "tags"
    | "notes"
    | "warnings"
    | "priority"
    | "timeout_s"
    | "max_attempts"
    | "req_gpu_count"
    | "req_gpu_tokens"
    | "req_memory_gb"
    | "req_tags"
    | "rate_card"
    | "request_id"
    | "retried_from"
    | "pipeline_id"
    | "pipeline_step"
    | "expected_cost_usd"
  > {
  pipeline_run: number | null;
  reuse_key: string | null;
  requirementGroup: string;
  /** Ids for the first attempt's artifacts. */
  outputIds: Record<string, string>;
  /**
   * Seconds until the courier starts the job's workflow, if the first attempt does not end earlier.
   * Null for a pipeline's job: the pipeline's workflow has already started the job's workflow,
   * which inserts the job.
   */
  startAfterS: number | null;
}

/** A new job without a rate card. */
export type UnpricedJob = Omit<NewJob, "rate_card">;

/**
 * Inserts the job, its first attempt and the outbox entry that starts its workflow. Once committed,
 * the job can be assigned. Idempotent: returns undefined if the job already exists.
 */
export async function insertJob(db: Queryable, job: NewJob): Promise<JobRow | undefined> {
  const given = new Parameters();
  const { columns, values, other } = addJob(given, job);
  const text = insertion(`(${columns}) values (${values})`, other);
  return await maybeOne<JobRow>(db, text, given.values);
}

/**
 * Inserts a job as `insertJob` does, with the rate card in force. If the tenant has a budget,
 * inserts nothing and returns undefined, because the budget may not allow the job. Needs only one
 * statement, which keeps submissions fast.
 */
export async function insertUnbudgetedJob(
  db: Queryable,
  job: UnpricedJob,
): Promise<JobRow | undefined> {
  const given = new Parameters();
  const { columns, values, other } = addJob(given, job);
  const text = insertion(unbudgeted(columns, values, given.add(job.user_id)), other);
  return await maybeOne<JobRow>(db, text, given.values);
}

/** A job as JSON, for a statement that inserts several. */
export interface SerializedJob {
  job: UnpricedJob;
  json: string;
}

/**
 * Inserts any number of jobs of one tenant, each as `insertUnbudgetedJob` does. Calls that function
 * for a single job, because the statement for several jobs takes a third longer.
 *
 * @returns the inserted rows, in any order.
 */
export async function insertUnbudgetedJobs(db: Queryable, userId: string, jobs: SerializedJob[]) {
  const [first, ...others] = jobs;
  if (!first) return [];
  if (others.length === 0) {
    const row = await insertUnbudgetedJob(db, first.job);
    return row ? [row] : [];
  }
  const columns = Object.keys(splitJob(first.job).row).join(", ");
  const text = insertion(unbudgeted(columns, columns, "$2", "from given"), {
    given: `given as materialized (
      select r.*, item->'other' as other
      from jsonb_array_elements($1) item cross join jsonb_populate_record(null::jobs, item->'row') r),`,
    shape: "other->>'shape'",
    outputIds: "other->'outputIds'",
    startAfterS: "(other->>'startAfterS')",
    source: "job join given using (job_id)",
  });
  return await all<JobRow>(db, text, [`[${jobs.map(({ json }) => json).join(",")}]`, userId]);
}

export const serializeJob = (job: UnpricedJob): SerializedJob => ({
  job,
  json: JSON.stringify(splitJob(job)),
});

/** Splits a job into the columns of its row and the values for other tables. */
const splitJob = ({
  requirementGroup: shape,
  outputIds,
  startAfterS,
  ...row
}: NewJob | UnpricedJob) => ({
  row,
  other: { shape, outputIds, startAfterS },
});

/**
 * Adds the values of a job to the parameters of a statement.
 *
 * @returns SQL: the columns of the job's row, their values, and values for other tables.
 */
export function addJob(given: Parameters, job: NewJob | UnpricedJob) {
  const { row, other } = splitJob(job);
  const values = given.addAll(Object.values({ ...row, warnings: JSON.stringify(row.warnings) }));
  return {
    columns: Object.keys(row).join(", "),
    values,
    other: {
      shape: given.add(other.shape),
      outputIds: given.add(other.outputIds),
      startAfterS: given.add(other.startAfterS),
    },
  };
}

/**
 * SQL: the columns and the source of new rows. Adds the rate card in force. Selects no rows if the
 * tenant has a budget.
 */
const unbudgeted = (columns: string, values: string, userId: string, from = ""): string => `
  (${columns}, rate_card) select ${values}, (${CARD_NOW(userId)}) ${from}
  where not exists (select from budgets where user_id = ${userId})`;

/** SQL fragments for `insertion`, with the values for other tables than `jobs`. */
interface OtherParts {
  /**
   * The CTE `given`, which has the jobs to insert. Omitted for a single job, because its values are
   * parameters.
   */
  given?: string;
  shape: string;
  outputIds: string;
  startAfterS: string;
  /**
   * The FROM clause from which the rows of the other tables are made. Default: the CTE `job`, which
   * has the inserted jobs. If `given` is set, `source` must join `job` with the CTE `given`, which
   * has the values for the other tables.
   */
  source?: string;
}

/**
 * SQL: inserts jobs, their first attempts, and the outbox entries that start their workflows.
 * `rows`: the list of columns, followed by the VALUES or SELECT that returns the jobs.
 */
const insertion = (
  rows: string,
  { given = "", shape, outputIds, startAfterS, source = "job" }: OtherParts,
): string => `
  with ${given}
  job as (insert into jobs ${rows} on conflict (job_id) do nothing returning *),
  first as (
    insert into attempts (job_id, attempt, shape, priority, output_ids)
    select job_id, 1, ${shape}, job.priority, ${outputIds} from ${source}),
  start as (
    insert into outbox (job_id, attempt, due_at)
    select job_id, ${START_NUMBER}, now() + make_interval(secs => ${startAfterS}::float8)
    from ${source} where ${startAfterS}::float8 is not null)
  select * from job`;

/**
 * Reads jobs in the order of their ids. Leaves out jobs that do not exist or that the tenant may
 * not see. Stops once the payloads, params and results of the returned jobs have `maxBytes` or more
 * in total.
 */
export async function findJobsUpTo(
  db: Queryable,
  jobIds: string[],
  tenantScope: TenantScope,
  maxBytes: number,
) {
  return await all<JobRow & { shown_bytes: number }>(
    db,
    `select *, ${DERIVED} from (
       select *, sum(shown_bytes) over (order by job_id) - shown_bytes as bytes_before from ${ALL_JOBS} jobs
       where job_id = any($1) and ($2::text is null or user_id = $2)) jobs
     where bytes_before < $3`,
    [jobIds, tenantScope, maxBytes],
  );
}

export async function findJob(db: Queryable, jobId: string, tenantScope: TenantScope) {
  return await maybeOne<JobRow>(
    db,
    `select *, ${DERIVED} from ${ALL_JOBS} jobs where job_id = $1 and ($2::text is null or user_id = $2)`,
    [jobId, tenantScope],
  );
}

/**
 * Locks the job. Every transaction locks in this order: job, attempt, worker. An archived job is
 * returned without a lock, because only its `swept_at` may change.
 */
export async function lockJob(db: Queryable, jobId: string) {
  const lock = "select * from jobs where job_id = $1 for no key update";
  const locked = await maybeOne<JobRow>(db, lock, [jobId]);
  if (locked) return locked;
  return await maybeOne<JobRow>(db, "select * from archived_jobs where job_id = $1", [jobId]);
}

/**
 * Sets a job to `pending` after its attempt was lost, without waiting for Temporal. The job's
 * workflow later queues the next attempt.
 */
export async function returnToPending(db: Queryable, jobId: string): Promise<void> {
  await execute(
    db,
    `update jobs set status = 'pending', worker_id = null, progress = null
     where job_id = $1 and status = any('{assigned,running}')`,
    [jobId],
  );
}

/**
 * Records that the job is being cancelled. If a worker runs this attempt, the worker has `graceS`
 * seconds to stop.
 */
export async function requestCancel(
  db: Queryable,
  jobId: string,
  attempt: number,
  graceS: number,
  cancelledBy: string,
): Promise<void> {
  await execute(
    db,
    `with job as (
       update jobs set cancel_requested_at = coalesce(cancel_requested_at, now()),
              cancelled_by = coalesce(cancelled_by, $4)
       where job_id = $1 returning job_id)
     update attempts a set cancel_by = coalesce(cancel_by, now() + make_interval(secs => $3))
     from job where a.job_id = job.job_id and a.attempt = $2 and a.state = 'running'`,
    [jobId, attempt, graceS, cancelledBy],
  );
}

/**
 * Records the progress that workers report. Skips jobs that do not run, and rows that are locked.
 */
export async function recordProgress(
  db: Queryable,
  reports: { workerId: string; jobId: string; progress: number }[],
): Promise<void> {
  await execute(
    db,
    `with reports as (
       select * from unnest($1::text[], $2::text[], $3::float8[]) reports (job_id, worker_id, progress)),
     moved as (
       select j.job_id, reports.progress from jobs j join reports using (job_id, worker_id)
       where ${rowFilter("j.status = 'running'")} and j.progress is distinct from reports.progress
       order by j.job_id for no key update of j skip locked)
     update jobs j set progress = moved.progress from moved where j.job_id = moved.job_id`,
    [
      reports.map(({ jobId }) => jobId),
      reports.map(({ workerId }) => workerId),
      reports.map(({ progress }) => progress),
    ],
  );
}
