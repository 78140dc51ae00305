import { isOlder } from "../../platform/postgres/clock";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { CLOSED_AFTER } from "./lifetime";
import { CARD_AT_END } from "./rate-cards";

/** SQL: the first day of the last month that is closed, by the clock. */
export const LAST_CLOSED = `date_trunc('month', (now() - ${CLOSED_AFTER}) at time zone 'UTC') - interval '1 month'`;

/**
 * SQL: whether a month is over for so long that its storage is written for good. Without steps of the clock forward:
 * what is written stays, and a clock that is ahead would bill the month as if all were stored until its end.
 */
export const IS_CLOSED = (month: string): string =>
  isOlder(`(${month} + interval '1 month') at time zone 'UTC'`, CLOSED_AFTER);

/** SQL: the months of tenant `s` from its first open one to the last closed one that lack a line of theirs. */
export const UNWRITTEN = `
  select m, c.card from generate_series(s.open_month::timestamp, ${LAST_CLOSED}, interval '1 month') m
  cross join lateral (${CARD_AT_END("s.user_id", "(m + interval '1 month') at time zone 'UTC'")}) c
  where c.card->>'basis' = 'metered' and ${IS_CLOSED("m")} and not exists (
    select from billing_lines l
    where l.line_id = 'storage:' || s.user_id || ':' || to_char(m, 'YYYY-MM'))
  order by m`;

/** Most tenants that one statement looks at. */
const PAGE = 200;

/**
 * Notes of tenants up to which month nothing is left to write: months in which their card had no price for storage,
 * and those that were written out of order. Not of months that are over only because the clock was set forward.
 *
 * @param after the tenant after which it begins; "" for all.
 * @returns where the next page begins; "" after the last one.
 */
export async function passOverStorageMonths(db: Queryable, after: string): Promise<string> {
  const row = await maybeOne<{ next: string | null }>(
    db,
    `with page as materialized (
       select user_id, open_month from storage_months
       where user_id > $1 and open_month <= ${LAST_CLOSED} order by user_id limit ${PAGE}),
     passed as materialized (
       select s.user_id, s.open_month, least(
         (select u.m from (${UNWRITTEN} limit 1) u), over.until) as next_month
       from page s cross join lateral (
         select max(m) + interval '1 month' as until
         from generate_series(s.open_month::timestamp, ${LAST_CLOSED}, interval '1 month') m
         where ${IS_CLOSED("m")}) over
       where over.until is not null),
     noted as (
       update storage_months s set open_month = p.next_month::date from passed p
       where s.user_id = p.user_id and s.open_month = p.open_month and p.next_month > p.open_month)
     select case when count(*) = ${PAGE} then max(user_id) end as next from page`,
    [after],
  );
  return row?.next ?? "";
}
