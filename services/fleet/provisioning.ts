import type pg from "pg";
import { maybeOne } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { BEGIN, needsOf, stepThrough } from "./matching";
import { fitting, kindsOf } from "./worker-kinds";

/** Most jobs whose status one statement changes, under the matcher's lock. */
const MOVED = 500;

/** Most requirement groups that one statement reads, of each of the two kinds of queued jobs. */
const GROUPS = 500;

/** Most statements of one call: a sweep of the scheduler has other things to do. */
const STATEMENTS = 10;

const groupsOf = (name: string, isMarked: boolean): string =>
  `select shape, ${isMarked} as is_marked, ${needsOf()} from ${name} h join jobs j using (job_id)`;

const MARKED = "is_provisioning";
const UNMARKED = "not is_provisioning";

/** Jobs of a group `g`. By order, which an equation has not: only an index has it, so no plan reads the table. */
const someOf = (condition: string): string => `
  select job_id from attempts
  where state = 'queued' and ${condition} and shape >= g.shape and shape <= g.shape
  order by shape limit ${MOVED}`;

/**
 * Jobs that wait for a worker which is being set up are `provisioning_worker`: no worker in service fits them, and
 * one that is bootstrapping does. Once that has changed they are `pending` again.
 *
 * Reads the jobs whose status changes, and one of each requirement group, whatever the length of the queue.
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
 * Brings the status of queued jobs in line with the workers that are being set up, part by part: under the
 * matcher's lock, so that no job is assigned meanwhile, and not for long at a time. What another transaction
 * holds is left to a later call.
 *
 * @param after the requirement group after which it begins; "" for all.
 * @returns where the next call goes on; "" if this one saw all.
 */
export async function markProvisioning(pool: pg.Pool, after = ""): Promise<string> {
  let from = after;
  for (let n = 0; n < STATEMENTS; n++) {
    const step: { more: boolean; next: string | null } | undefined = await transaction(
      pool,
      (db) => maybeOne(db, PROVISION, [from]),
      { begin: BEGIN },
    );
    // Those that it had no room for are still to be moved.
    if (step?.more) continue;
    from = step?.next ?? "";
    if (from === "") break;
  }
  return from;
}
