import type pg from "pg";
import { maybeOne } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { BEGIN, stepThrough } from "./assignment-sql";
import { needsOf } from "./eligibility-sql";
import { fitting, kindsOf } from "./worker-kinds";

/** The most jobs whose status one statement changes. The statement holds the matcher's lock, so it must be short. */
const MOVED = 500;

/**
 * One statement reads at most this many requirement groups with jobs in `provisioning_worker` (marked), and at most
 * this many with `pending` jobs (unmarked).
 */
const GROUPS = 500;

/** The most statements of one call of `markProvisioning`, so that a sweep of the scheduler stays short. */
const STATEMENTS = 10;

const groupsOf = (name: string, isMarked: boolean): string =>
  `select shape, ${isMarked} as is_marked, ${needsOf()} from ${name} h join jobs j using (job_id)`;

const MARKED = "is_provisioning";
const UNMARKED = "not is_provisioning";

/**
 * SQL: up to MOVED jobs of group `g`. The `order by` makes Postgres use the index and never read the whole table. With
 * `=` instead of the two inequalities, Postgres would ignore the `order by`.
 */
const someOf = (condition: string): string => `
  select job_id from attempts
  where state = 'queued' and ${condition} and shape >= g.shape and shape <= g.shape
  order by shape limit ${MOVED}`;

/**
 * SQL: sets the status of queued jobs. A job is `provisioning_worker` if no worker in service fits it and a
 * bootstrapping one does. Otherwise it is `pending`. Reads only one job of each requirement group and the jobs whose
 * status changes.
 */
const PROVISION = `
with recursive bootstrapping as materialized (${kindsOf("status = 'bootstrapping'")}),
${stepThrough("unmarked", "$1::text", GROUPS, UNMARKED, "exists (select from bootstrapping)")},
${stepThrough("marked", "$1::text", GROUPS, MARKED)},
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
    from waiting g cross join lateral (${someOf(UNMARKED)}) a where not g.is_marked
    union all
    select a.job_id, 'pending' from leaving g cross join lateral (${someOf(MARKED)}) a
  ) differing limit ${MOVED}),
moving as materialized (
  select found.* from found join jobs j using (job_id)
  where j.status in ('pending', 'provisioning_worker') for no key update of j skip locked),
moved as (
  update jobs j set status = moving.status from moving where j.job_id = moving.job_id returning j.job_id)
select (select count(*) from found) = ${MOVED} and exists (select from moved) as more,
       (select min(last) from (
          select max(shape) as last from unmarked having count(*) = ${GROUPS}
          union all
          select max(shape) from marked having count(*) = ${GROUPS}) full_pages) as next`;

/**
 * Sets the status of queued jobs to `provisioning_worker` or `pending` (see PROVISION). Each statement holds the
 * matcher's lock for a short time, so that no pass runs meanwhile. It skips locked rows, such as those of a job that
 * assign-only-job.ts assigns; a later call updates them.
 *
 * @param after the requirement group after which this call starts; "" for the first group.
 * @returns the group after which the next call continues; "" for the first group.
 */
export async function markProvisioning(pool: pg.Pool, after = ""): Promise<string> {
  let from = after;
  for (let n = 0; n < STATEMENTS; n++) {
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
