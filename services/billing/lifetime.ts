/**
 * A month closes this long after its end. An outcome that is recorded later is billed to the month that is then open.
 */
export const CLOSED_AFTER = "interval '1 hour'";

/**
 * SQL: the sum of all recorded steps of the database's clock, in seconds. (In a step, the clock was set forward or
 * back.) A subquery, so that Postgres evaluates it once per statement, not per row.
 */
const OFFSET_S = "(select clock_offset_s())";

const UNTIL = "coalesce(d.stop_requested_at, now())";

/**
 * SQL: lifetime of deployment `d` in seconds: from `active_at` until its stop was requested, or until now. Subtracts
 * the clock steps in between. Never less than the lifetime that closed months are billed for.
 */
const LIVED_S = `greatest(d.closed_days * 86400, extract(epoch from ${UNTIL} - d.active_at)
  - coalesce(d.stop_offset_s, ${OFFSET_S}) + d.active_offset_s)`;

const DAYS = (seconds: string): string => `greatest(0, round((${seconds}) / 86400, 9))`;

/** SQL: billed lifetime of deployment `d`, in days. */
export const LIFETIME_DAYS = DAYS(LIVED_S);

/** SQL: billed lifetime, in days, of the deployment of billing record `b`; null if it has none. */
export const DAYS_OF_RECORD = `(select ${LIFETIME_DAYS} from deployments d where d.job_id = b.job_id)`;

/**
 * SQL: when deployment `d` began: its stop, or now, minus its lifetime. Differs from `active_at` if the clock was set
 * after that time.
 */
export const BEGAN = `(${UNTIL} - greatest(0, ${LIVED_S}) * interval '1 second')`;

/** SQL: lifetime of deployment `d` at a time, in days, rounded as in its bill. */
export const livedAt = (time: string): string =>
  DAYS(`${LIVED_S} - greatest(0, extract(epoch from ${UNTIL} - (${time})))`);

/**
 * SQL: lifetime of deployment `d` at the end of each of its months, and now. Only for a deployment that is live or that
 * this transaction stops. Months are in UTC. The first month is the month of `now()` minus the lifetime. That time
 * differs from `active_at` by the clock steps since `active_at` and, in a stop, by the time for which the transaction
 * waited for the deployment's lock.
 */
export const LIVED_BY_MONTH = `(
  select jsonb_agg(jsonb_build_object('month', to_char(m, 'YYYY-MM-DD'), 'days',
           ${DAYS("life.s - greatest(0, extract(epoch from now() - (m + interval '1 month') at time zone 'UTC'))")}) order by m)
  from (select ${LIVED_S} as s) life,
       generate_series(
         date_trunc('month', (now() - greatest(0, life.s) * interval '1 second') at time zone 'UTC'),
         now() at time zone 'UTC', interval '1 month') m)`;

/**
 * SQL: the months for which deployment `d` has a billing line, each with the cost of the line (its share of the bill).
 */
export const WRITTEN_SHARES = `(
  select coalesce(jsonb_agg(jsonb_build_object('month', to_char(l.month, 'YYYY-MM-DD'),
                                               'costUsd', l.cost_usd::text) order by l.month), '[]')
  from billing_lines l where l.job_id = d.job_id)`;
