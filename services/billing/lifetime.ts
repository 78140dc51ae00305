/** A month closes this long after its end. Outcomes recorded later count in the open month. */
export const CLOSED_AFTER = "interval '1 hour'";

/** A subquery, so that Postgres evaluates it once per statement, not per row. */
const OFFSET_S = "(select clock_offset_s())";

const UNTIL = "coalesce(d.stop_requested_at, now())";

/**
 * SQL: lifetime of deployment `d` in seconds, from when it could first be stopped to its stop or to now. Excludes steps
 * of the clock: `clock_offset_s()` is the sum of all steps, so the difference of the offsets at both ends is the sum of
 * the steps in between. Never less than the lifetime that closed months are billed for.
 */
const LIVED_S = `greatest(d.closed_days * 86400, extract(epoch from ${UNTIL} - d.active_at)
  - coalesce(d.stop_offset_s, ${OFFSET_S}) + d.active_offset_s)`;

const DAYS = (seconds: string): string => `greatest(0, round((${seconds}) / 86400, 9))`;

/** SQL: billed lifetime of deployment `d`, in days. */
export const LIFETIME_DAYS = DAYS(LIVED_S);

/** SQL: billed lifetime, in days, of the deployment of billing record `b`; null if it has none. */
export const DAYS_OF_RECORD = `(select ${LIFETIME_DAYS} from deployments d where d.job_id = b.job_id)`;

/**
 * SQL: when deployment `d` began, counted back from its stop, or from now, by its lifetime. Differs from `active_at` if
 * the clock was set in between, and by the time for which the stop waited for the deployment's lock.
 */
export const BEGAN = `(${UNTIL} - greatest(0, ${LIVED_S}) * interval '1 second')`;

/** SQL: lifetime of deployment `d` at a time, in days, rounded as in its bill. */
export const livedAt = (time: string): string =>
  DAYS(`${LIVED_S} - greatest(0, extract(epoch from ${UNTIL} - (${time})))`);

/**
 * SQL: lifetime of deployment `d` at the end of each of its months, and now. Only for a deployment that is live or that
 * this transaction stops. Months are in UTC, without daylight saving time. The lifetime is counted back from now: if
 * the clock was set, the deployment counts as begun that much later or earlier.
 */
export const LIVED_BY_MONTH = `(
  select jsonb_agg(jsonb_build_object('month', to_char(m, 'YYYY-MM-DD'), 'days',
           ${DAYS("life.s - greatest(0, extract(epoch from now() - (m + interval '1 month') at time zone 'UTC'))")}) order by m)
  from (select ${LIVED_S} as s) life,
       generate_series(
         date_trunc('month', (now() - greatest(0, life.s) * interval '1 second') at time zone 'UTC'),
         now() at time zone 'UTC', interval '1 month') m)`;

/** SQL: the written shares of the bill of deployment `d`, one per month. */
export const WRITTEN_SHARES = `(
  select coalesce(jsonb_agg(jsonb_build_object('month', to_char(l.month, 'YYYY-MM-DD'),
                                               'costUsd', l.cost_usd::text) order by l.month), '[]')
  from billing_lines l where l.job_id = d.job_id)`;
