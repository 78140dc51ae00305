import { z } from "zod";
import type { TenantScope } from "../../core/accounts/permissions";
import { JOB_TYPES } from "../../core/jobs/job-types";
import type { PendingReason } from "../../core/jobs/pending-reason";
import { JOB_STATUSES, waitsForWorker } from "../../core/jobs/states";
import { givenTime, timestamp } from "../../core/timestamp";
import { SingleFlight } from "../../platform/concurrency/single-flight";
import { type Route, route } from "../../platform/http/route";
import { readClock } from "../../platform/postgres/clock";
import { recordOf } from "../../platform/record-of";
import type { Context } from "../../services/context";
import { countJobs, type JobCount, listQueueFronts } from "../../services/jobs/job-counts";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";
import type { JobPresenter } from "./job-presenter";

const DAY_MS = 86_400_000;
/**
 * The pending reason is computed for at most this many requirement groups, largest first. A
 * requirement group has the queued jobs of one tenant with equal requirements.
 */
const MAX_GROUPS = 500;
/** The pending code under which the jobs of all groups beyond MAX_GROUPS are counted. */
const OTHER = "other";

const byStatus = z.object(recordOf(JOB_STATUSES, () => z.int()));
const counts = z.record(z.string(), z.int());

const countsSchema = z
  .object({
    by_status: byStatus.describe("all unfinished jobs, and jobs that ended after `ended_after`"),
    by_job_type: z
      .object(recordOf(JOB_TYPES, () => byStatus))
      .describe("`by_status` for each job type"),
    by_pending_code: counts.describe(
      "number of waiting jobs by `pending_reason` code. A tenant's jobs with equal requirements all count under the " +
        `code of the first one in the queue. \`${OTHER}\`: jobs beyond the ${MAX_GROUPS} most frequent requirements`,
    ),
    by_error_code: counts.describe("jobs that failed after `ended_after`, by error code"),
    ended_after: timestamp,
  })
  .meta({ id: "JobCounts" });

export function jobCountsRoute(ctx: Context, presenter: JobPresenter): Route {
  // Dashboards poll often: concurrent requests share one result.
  const shared = new SingleFlight<z.infer<typeof countsSchema>>();
  return route({
    method: "GET",
    paths: ["/api/jobs/counts"],
    scope: "user",
    operationId: "countJobs",
    tag: "Jobs",
    summary: "Count jobs by status, type, pending reason and error",
    query: z.strictObject({
      ended_after: givenTime
        .optional()
        .describe("count finished jobs that ended after this time; by default a day ago"),
      ...tenantQuery,
    }),
    responses: { 200: { description: "the counts", schema: countsSchema } },
    async handle({ principal, query }) {
      const tenantScope = tenantFilter(principal, query.user_id);
      return await shared.do(JSON.stringify([tenantScope, query.ended_after]), async () => {
        const now = Date.parse(await readClock(ctx.pool));
        const endedAfter = query.ended_after ?? new Date(now - DAY_MS).toISOString();
        const rows = await countJobs(ctx.pool, tenantScope, endedAfter);
        return {
          by_status: statusesOf(rows),
          by_job_type: recordOf(JOB_TYPES, (type) =>
            statusesOf(rows.filter((row) => row.job_type === type)),
          ),
          by_pending_code: await countReasons(ctx, presenter, tenantScope, rows),
          by_error_code: sumBy(rows, ({ error_code: code }) => code ?? undefined),
          ended_after: endedAfter,
        };
      });
    },
  });
}

const statusesOf = (rows: JobCount[]): z.infer<typeof byStatus> => {
  const sums = sumBy(rows, ({ status }) => status);
  return recordOf(JOB_STATUSES, (status) => sums[status] ?? 0);
};

function sumBy<Row extends { jobs: number }>(
  rows: Row[],
  nameOf: (row: Row) => string | undefined,
): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const row of rows) {
    const name = nameOf(row);
    if (name !== undefined) sums[name] = (sums[name] ?? 0) + row.jobs;
  }
  return sums;
}

const total = (rows: { jobs: number }[]): number => rows.reduce((sum, { jobs }) => sum + jobs, 0);

async function countReasons(
  ctx: Context,
  presenter: JobPresenter,
  tenantScope: TenantScope,
  rows: JobCount[],
): Promise<Record<string, number>> {
  const fronts = await listQueueFronts(ctx.pool, tenantScope, MAX_GROUPS);
  const reasons = await presenter.explain(fronts);
  const sums = sumBy(
    fronts.map(({ jobs }, at) => ({ jobs, code: reasons[at]?.code })),
    ({ code }): PendingReason["code"] | undefined => code,
  );
  // `rows` counts all waiting jobs, but `fronts` only the queued ones. The difference is the jobs
  // between two attempts, and a few jobs that were assigned after `rows` was read. If `fronts` has
  // MAX_GROUPS groups, it may leave out queued jobs of smaller groups too. Then count the whole
  // difference as OTHER.
  const waiting = rows.filter(({ status }) => waitsForWorker(status));
  const missing = total(waiting) - total(fronts);
  const code = fronts.length < MAX_GROUPS ? "between_attempts" : OTHER;
  return missing > 0 ? { ...sums, [code]: missing } : sums;
}
