/** A month closes this long after its end. A line that is written later counts in the open month. */
export const CLOSED_AFTER = "interval '1 hour'";

/** As a subquery it is evaluated once for a statement, not for each row. */
const OFFSET_S = "(select clock_offset_s())";

const UNTIL = "coalesce(d.stop_requested_at, now())";

/**
 * Seconds that deployment `d` has lived: from when it could first be stopped to its stop, or to now. `now()` less
 * `clock_offset_s()`, the sum of all steps of the clock, goes on evenly (clock.ts), so the offsets at both ends
 * say by how much the clock was set between them. Never less than what closed months bear.
 */
const LIVED_S = `greatest(d.closed_days * 86400, extract(epoch from ${UNTIL} - d.active_at)
  - coalesce(d.stop_offset_s, ${OFFSET_S}) + d.active_offset_s)`;

const DAYS = (seconds: string): string => `greatest(0, round((${seconds}) / 86400, 9))`;

/** What is billed of deployment `d`. */
export const LIFETIME_DAYS = DAYS(LIVED_S);

/** The same of the deployment that a billing record `b` is for; null where it is for none. */
export const DAYS_OF_RECORD = `(select ${LIFETIME_DAYS} from deployments d where d.job_id = b.job_id)`;

/** When deployment `d` began by the clock as it was at its stop, or is now: its lifetime before that. */
export const BEGAN = `(${UNTIL} - greatest(0, ${LIVED_S}) * interval '1 second')`;

/** How long deployment `d` had lived at a time, in days, as its bill rounds them. */
export const livedAt = (time: string): string =>
  DAYS(`${LIVED_S} - greatest(0, extract(epoch from ${UNTIL} - (${time})))`);

/**
 * How long deployment `d`, which is live or stopped now, had lived when each of its months ended, or now. Months
 * are UTC's, so that no daylight saving time makes one longer. They are counted back from today's date: where the
 * clock was set, the deployment began that much later or earlier.
 */
export const LIVED_BY_MONTH = `(
  select jsonb_agg(jsonb_build_object('month', to_char(m, 'YYYY-MM-DD'), 'days',
           ${DAYS("life.s - greatest(0, extract(epoch from now() - (m + interval '1 month') at time zone 'UTC'))")}) order by m)
  from (select ${LIVED_S} as s) life,
       generate_series(
         date_trunc('month', (now() - greatest(0, life.s) * interval '1 second') at time zone 'UTC'),
         now() at time zone 'UTC', interval '1 month') m)`;

/** What is written of the bill of deployment `d`: a month's share each. */
export const WRITTEN_SHARES = `(
  select coalesce(jsonb_agg(jsonb_build_object('month', to_char(l.month, 'YYYY-MM-DD'),
                                               'costUsd', l.cost_usd::text) order by l.month), '[]')
  from billing_lines l where l.job_id = d.job_id)`;
