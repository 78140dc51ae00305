import type pg from "pg";
import { maybeOne } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { BEGIN, listGroups } from "./assignment-sql";
import { needsOf } from "./eligibility-sql";
import { fitting, kindsOf } from "./worker-kinds";

/**
 * The maximum number of jobs whose status one statement changes. The statement must be short,
 * because it holds the matcher's lock (assignment-sql.ts), and no scheduler pass can run meanwhile.
 */
const MAX_CHANGED_JOBS = 500;

/**
 * The maximum length of each of the two lists of requirement groups that one statement reads:
 * - `marked`: groups with `provisioning_worker` jobs.
 * - `unmarked`: groups with `pending` jobs.
 */
const GROUPS = 500;

/**
 * The maximum number of statements that one call of `markProvisioning` runs. The limit keeps a
 * sweep of the scheduler short.
 */
const MAX_STATEMENTS = 10;

const groupsOf = (name: string, isMarked: boolean): string =>
  `select shape, ${isMarked} as is_marked, ${needsOf()} from ${name} h join jobs j using (job_id)`;

const MARKED = "is_provisioning";
const UNMARKED = "not is_provisioning";

/**
 * SQL: up to MAX_CHANGED_JOBS jobs of group `g`. The `order by` makes Postgres use the index and
 * never read the whole table. With `=` instead of the two inequalities, Postgres would ignore the
 * `order by`.
 */
const jobsOfGroup = (condition: string): string => `
  select job_id from attempts
  where state = 'queued' and ${condition} and shape >= g.shape and shape <= g.shape
  order by shape limit ${MAX_CHANGED_JOBS}`;

/**
 * SQL: sets the status of queued jobs. A job is `provisioning_worker` if no worker in service fits
 * the job but a bootstrapping worker does. Otherwise the job is `pending`. Reads only one job of
 * each requirement group and the jobs whose status changes.
 */
const PROVISION = `
with recursive bootstrapping as materialized (${kindsOf("status = 'bootstrapping'")}),
${listGroups("unmarked", "$1::text", GROUPS, UNMARKED, "exists (select from bootstrapping)")},
${listGroups("marked", "$1::text", GROUPS, MARKED)},
groups as materialized (
  ${groupsOf("unmarked", false)} union all ${groupsOf("marked", true)}),
expected as materialized (${fitting("groups", "bootstrapping")}),
serving as materialized (${kindsOf(
  `status in ('idle', 'busy') and not draining
   and (shared or user_id in (select user_id from expected))`,
)}),
served as materialized (${fitting("expected", "serving")}),
waiting as materialized (
  select shape, is_marked from expected except select shape, is_marked from served),
leaving as materialized (
  select shape from groups where is_marked except select shape from waiting where is_marked),
found as materialized (
  select * from (
    select a.job_id, 'provisioning_worker' as status
    from waiting g cross join lateral (${jobsOfGroup(UNMARKED)}) a where not g.is_marked
    union all
    select a.job_id, 'pending' from leaving g cross join lateral (${jobsOfGroup(MARKED)}) a
  ) differing limit ${MAX_CHANGED_JOBS}),
moving as materialized (
  select found.* from found join jobs j using (job_id)
  where j.status in ('pending', 'provisioning_worker') for no key update of j skip locked),
moved as (
  update jobs j set status = moving.status from moving where j.job_id = moving.job_id returning j.job_id)
select (select count(*) from found) = ${MAX_CHANGED_JOBS} and exists (select from moved) as more,
       (select min(last) from (
          select max(shape) as last from unmarked having count(*) = ${GROUPS}
          union all
          select max(shape) from marked having count(*) = ${GROUPS}) full_pages) as next`;

/**
 * Sets the status of queued jobs to `provisioning_worker` or `pending` (see PROVISION). Each
 * statement holds the matcher's lock, so that no scheduler pass runs at the same time. The
 * statement skips locked rows, such as the row of a job that assign-only-job.ts is assigning. A
 * later call updates these rows.
 *
 * @param after the requirement group after which this call starts; "" for the first group.
 * @returns the group after which the next call continues; "" for the first group.
 */
export async function markProvisioning(pool: pg.Pool, after = ""): Promise<string> {
  let from = after;
  for (let n = 0; n < MAX_STATEMENTS; n++) {
    const step: { more: boolean; next: string | null } | undefined = await transaction(
      pool,
      (db) => maybeOne(db, PROVISION, [from]),
      { begin: BEGIN },
    );
    // The statement reached its limit: run it again from the same group.
    if (step?.more) continue;
    from = step?.next ?? "";
    if (from === "") break;
  }
  return from;
}
