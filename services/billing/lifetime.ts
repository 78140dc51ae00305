/**
 * A month closes this long after its end. If a cost is recorded after its month has closed, it is
 * billed to the first month that is still open.
 */
export const CLOSED_AFTER = "interval '1 hour'";

/**
 * SQL: the sum of all recorded clock steps, in seconds. A clock step sets the database's clock
 * forward or back. A subquery, so that Postgres evaluates it once per statement, not per row.
 */
const OFFSET_S = "(select clock_offset_s())";

const UNTIL = "coalesce(d.stop_requested_at, now())";

/**
 * SQL: lifetime of deployment `d` in seconds: from `active_at` until its stop was requested, or
 * until now. Subtracts the clock steps in between. Never less than the lifetime that closed months
 * are billed for.
 */
const LIFETIME_S = `greatest(d.closed_days * 86400, extract(epoch from ${UNTIL} - d.active_at)
  - coalesce(d.stop_offset_s, ${OFFSET_S}) + d.active_offset_s)`;

const DAYS = (seconds: string): string => `greatest(0, round((${seconds}) / 86400, 9))`;

/** SQL: billed lifetime of deployment `d`, in days. */
export const LIFETIME_DAYS = DAYS(LIFETIME_S);

/**
 * SQL: billed lifetime, in days, of the deployment that billing record `b` is for. Null if the
 * record is not for a deployment.
 */
export const DAYS_OF_RECORD = `(select ${LIFETIME_DAYS} from deployments d where d.job_id = b.job_id)`;

/**
 * SQL: when deployment `d` began, computed as its end minus its lifetime. The end is the recorded
 * time of the stop request, or `now()` if no stop was requested. The result can differ from
 * `active_at`: the lifetime excludes clock steps, and the time that `markStopping` waited for the
 * deployment's lock before it recorded the request.
 */
export const BEGAN = `(${UNTIL} - greatest(0, ${LIFETIME_S}) * interval '1 second')`;

/** SQL: the lifetime that deployment `d` had at `time`, in days, rounded as in its bill. */
export const livedAt = (time: string): string =>
  DAYS(`${LIFETIME_S} - greatest(0, extract(epoch from ${UNTIL} - (${time})))`);

/**
 * SQL: lifetime of deployment `d` at the end of each of its months (UTC), and now. Use it only for
 * a deployment that is live or that this transaction stops. The first month is the one in which the
 * deployment began, computed as `now()` minus the lifetime. This month can differ from the month of
 * `active_at`, because the lifetime does not include clock steps.
 */
export const LIFETIME_BY_MONTH = `(
  select jsonb_agg(jsonb_build_object('month', to_char(m, 'YYYY-MM-DD'), 'days',
           ${DAYS("life.s - greatest(0, extract(epoch from now() - (m + interval '1 month') at time zone 'UTC'))")}) order by m)
  from (select ${LIFETIME_S} as s) life,
       generate_series(
         date_trunc('month', (now() - greatest(0, life.s) * interval '1 second') at time zone 'UTC'),
         now() at time zone 'UTC', interval '1 month') m)`;

/**
 * SQL: the months for which deployment `d` has a billing line, each with the cost of the line (its
 * share of the bill).
 */
export const WRITTEN_SHARES = `(
  select coalesce(jsonb_agg(jsonb_build_object('month', to_char(l.month, 'YYYY-MM-DD'),
                                               'costUsd', l.cost_usd::text) order by l.month), '[]')
  from billing_lines l where l.job_id = d.job_id)`;
