import { isOlder } from "../../platform/postgres/clock";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { CLOSED_AFTER } from "./lifetime";
import { CARD_AT_END } from "./rate-cards";

/**
 * SQL: the first day of the last month that has closed according to the database's clock. If that
 * clock was set forward, the month may not be over yet: see IS_CLOSED.
 */
export const LAST_CLOSED = `date_trunc('month', (now() - ${CLOSED_AFTER}) at time zone 'UTC') - interval '1 month'`;

/**
 * SQL: whether a month is closed, so that its storage line may be written. Does not count time that
 * the clock skipped when it was set forward: Forge could otherwise write the line before the
 * month's end, and a line is never changed.
 */
export const IS_CLOSED = (month: string): string =>
  isOlder(`(${month} + interval '1 month') at time zone 'UTC'`, CLOSED_AFTER);

/**
 * SQL: the closed months (see IS_CLOSED) of tenant `s` that have a price for storage and lack their
 * storage line. Reads the months from `open_month` on, because no earlier month lacks a line.
 */
export const UNWRITTEN = `
  select m, c.card from generate_series(s.open_month::timestamp, ${LAST_CLOSED}, interval '1 month') m
  cross join lateral (${CARD_AT_END("s.user_id", "(m + interval '1 month') at time zone 'UTC'")}) c
  where c.card->>'basis' = 'metered' and ${IS_CLOSED("m")} and not exists (
    select from billing_lines l
    where l.line_id = 'storage:' || s.user_id || ':' || to_char(m, 'YYYY-MM'))
  order by m`;

/** The most tenants that one statement reads. */
const PAGE = 200;

/**
 * Advances the `open_month` of one page of tenants to the first month that may still lack its
 * storage line. Never advances past a month that seems over only because the clock was set forward
 * (see IS_CLOSED).
 *
 * A trigger (migration 0048) also advances `open_month`, by one month, when the line of exactly
 * that month is inserted. So the trigger can't pass two kinds of months:
 * - Months in which storage had no price: no line is inserted for them.
 * - Months whose line was inserted while `open_month` was still an earlier month.
 *
 * @param after the last tenant of the previous page; "" for the first page.
 * @returns `after` of the next page; "" after the last one.
 */
export async function advanceOpenMonths(db: Queryable, after: string): Promise<string> {
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
