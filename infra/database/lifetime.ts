/** A month closes this long after its end. A line that is written later counts in the open month. */
export const CLOSED_AFTER = "interval '1 hour'";

/**
 * Seconds between the start of deployment `d` and `until` by which the database's clock was set forward (clock.ts).
 * Steps that were noticed after `known` don't count, because they must not change a bill that is closed.
 */
const STEPPED = (until: string, known: string): string => `coalesce((
  select sum(greatest(0, extract(epoch from
           least(step.seen_at, ${until}) - greatest(step.seen_at - make_interval(secs => step.by_s), d.active_at))))
  from clock_steps step where step.seen_at > d.active_at and step.seen_at <= ${known}), 0)`;

/** Days of deployment `d` from when it could first be stopped up to `until`. */
const DAYS = (until: string, known: string): string =>
  `greatest(0, round(((extract(epoch from ${until} - d.active_at) - ${STEPPED(until, known)}) / 86400)::numeric, 9))`;

const UNTIL = "coalesce(d.stop_requested_at, now())";

/** What is billed of deployment `d`: the days from when it could first be stopped to its stop, or to now. */
export const LIFETIME_DAYS = DAYS(UNTIL, UNTIL);

/** How long deployment `d` had lived at a time, in days, as its bill rounds them. */
export const livedAt = (time: string): string => DAYS(`least(${time}, ${UNTIL})`, UNTIL);

/** The same of the deployment that a billing record `b` is for; null where it is for none. */
export const DAYS_OF_RECORD = `(select ${LIFETIME_DAYS} from deployments d where d.job_id = b.job_id)`;

/**
 * How long deployment `d` had lived when each of its months ended, or at `until`. Months are UTC's, so
 * that no clock change makes one longer.
 *
 * @param known steps of the clock that were noticed later are billed.
 */
export const livedByMonth = (until: string, known = until): string => `(
  select jsonb_agg(jsonb_build_object('month', to_char(m, 'YYYY-MM-DD'), 'days',
           ${DAYS(`least(${until}, (m + interval '1 month') at time zone 'UTC')`, known)}) order by m)
  from generate_series(date_trunc('month', d.active_at at time zone 'UTC'),
                       greatest(${until}, d.active_at) at time zone 'UTC', interval '1 month') m
  where m at time zone 'UTC' < greatest(${until}, d.active_at)
     or m = date_trunc('month', d.active_at at time zone 'UTC'))`;
