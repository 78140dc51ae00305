import type { TenantScope } from "../../core/accounts/permissions";
import type { JobType } from "../../core/jobs/job-types";
import { type ErrorCode, JOB_STATUSES, type JobStatus } from "../../core/jobs/states";
import {
  type Page,
  pageStatement,
  readPage,
  Where,
  type WithPosition,
} from "../../platform/postgres/pages";
import type { Queryable } from "../../platform/postgres/pool";
import { anyContains, contains, either, startsWith } from "../../platform/postgres/text-search";
import { ALL_JOBS } from "./all-jobs";
import { DERIVED } from "./jobs";
import { SHOWN_COLUMNS, type ShownJob } from "./shown-jobs";

export interface JobFilter {
  statuses?: JobStatus[] | undefined;
  jobTypes?: JobType[] | undefined;
  /** The job has all of these tags. */
  tags?: string[] | undefined;
  workerId?: string | undefined;
  pipelineId?: string | undefined;
  createdAfter?: string | undefined;
  createdBefore?: string | undefined;
  completedAfter?: string | undefined;
  completedBefore?: string | undefined;
  createdBy?: string | undefined;
  errorCodes?: ErrorCode[] | undefined;
  /** Matches the start of the id, or a part of a tag or of the notes. */
  text?: string | undefined;
}

/** One page of jobs, newest first. */
export async function listJobs(
  db: Queryable,
  tenantScope: TenantScope,
  filter: JobFilter,
  page: Page,
): Promise<WithPosition<ShownJob>[]> {
  return await readPage(db, listJobsStatement(tenantScope, filter, page));
}

/** The statement of `listJobs`. Exported so that a test can run EXPLAIN on it. */
export function listJobsStatement(tenantScope: TenantScope, filter: JobFilter, page: Page) {
  const where = new Where()
    .inTenantScope(tenantScope)
    .andIfSet(filter.jobTypes, (types) => `job_type = any(${types})`)
    .andIfSet(filter.tags, (tags) => `tags @> ${tags}::text[]`)
    .andIfSet(filter.workerId, (worker) => `worker_id = ${worker}`)
    .andIfSet(filter.pipelineId, (pipeline) => `pipeline_id = ${pipeline}`)
    .andIfSet(filter.createdAfter, (time) => `created_at > ${time}::timestamptz`)
    .andIfSet(filter.createdBefore, (time) => `created_at < ${time}::timestamptz`)
    .andIfSet(filter.completedAfter, (time) => `completed_at > ${time}::timestamptz`)
    .andIfSet(filter.completedBefore, (time) => `completed_at < ${time}::timestamptz`)
    .andIfSet(filter.createdBy, (name) => `created_by = ${name}`)
    .andIfSet(filter.errorCodes, (codes) => `error_code = any(${codes})`)
    .andIfSet(filter.text, (text) =>
      either(startsWith("job_id", text), anyContains("tags", text), contains("notes", text)),
    );
  // Literals, not a parameter: only then can Postgres use the partial index on unfinished jobs.
  const known = JOB_STATUSES.filter((status) => filter.statuses?.includes(status));
  if (filter.statuses) where.and(`status in (${known.map((status) => `'${status}'`).join(", ")})`);
  return pageStatement({
    select: `${SHOWN_COLUMNS}, shown_bytes, ${DERIVED}`,
    from: `${ALL_JOBS} jobs`,
    order: ["created_at", "job_id"],
    where,
    page,
    sizedBy: "shown_bytes",
  });
}
