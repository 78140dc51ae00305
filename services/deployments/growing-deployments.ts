import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { IDLE, needsOf, SOME_KINDS } from "../fleet/eligibility-sql";
import { fitting, kindsOf } from "../fleet/worker-kinds";

/** The most deployments that one statement reads. */
const PAGE = 200;

/**
 * Matches deployments with kinds of idle workers. Workers of one kind fit the same jobs
 * (worker-kinds.ts). Reads only a limited number of each tenant's kinds, chosen at random, as the
 * scheduler does. So a tenant with more kinds waits longer, but does not delay other tenants.
 */
const REQUEST_GROWTH = `
with page as materialized (
  select * from deployments
  where status = 'active' and max_replicas > min_replicas and deployment_id > $1
  order by deployment_id limit ${PAGE}),
needs as materialized (
  select d.deployment_id, ${needsOf("live.req_avoid")}
  from page d join jobs j using (job_id) cross join lateral (
    select coalesce(array_agg(worker_id) filter (where state in ('serving', 'stopping')), '{}') as req_avoid,
           count(*) filter (where state = 'serving') as serving,
           count(*) filter (where state = 'starting') as starting
    from placements p where p.deployment_id = d.deployment_id and p.state <> 'ended') live
  where d.asked = d.told and (d.next_try_at is null or d.next_try_at <= now())
    and live.serving < d.max_replicas and live.starting = 0),
all_kinds as (${kindsOf(`(shared or user_id in (select user_id from needs)) and ${IDLE}`)}),
kinds as materialized (${SOME_KINDS}),
able as materialized (${fitting("needs", "kinds")}),
growing as materialized (
  select d.deployment_id from deployments d
  where d.deployment_id in (select deployment_id from able) and d.status = 'active' and d.asked = d.told
  for no key update of d skip locked),
woken as (
  update deployments d set asked = asked + 1 from growing
  where d.deployment_id = growing.deployment_id returning d.deployment_id)
select (select coalesce(array_agg(deployment_id), '{}') from woken) as woken_ids,
       (select case when count(*) = ${PAGE} then max(deployment_id) end from page) as next`;

/**
 * Reads one page of deployments, and requests a wake of the workflows of those that could grow onto
 * an idle worker.
 *
 * @param after the id after which the page begins; "" for the first page.
 * @returns the ids of the deployments to wake, and `next`: the value of `after` for the next page,
 *   or "" if this was the last page.
 */
export async function requestGrowth(
  db: Queryable,
  after: string,
): Promise<{ wokenIds: string[]; next: string }> {
  const row = await maybeOne<{ woken_ids: string[]; next: string | null }>(db, REQUEST_GROWTH, [
    after,
  ]);
  return { wokenIds: row?.woken_ids ?? [], next: row?.next ?? "" };
}
