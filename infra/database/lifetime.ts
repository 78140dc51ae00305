/** What is billed of deployment `d`: the days from when it could first be stopped to its stop, or to now. */
export const LIFETIME_DAYS = `greatest(0, round((extract(epoch from
  coalesce(d.stop_requested_at, now()) - d.active_at) / 86400)::numeric, 9))`;

/** The same of the deployment that a billing record `b` is for; null where it is for none. */
export const DAYS_OF_RECORD = `(select ${LIFETIME_DAYS} from deployments d where d.job_id = b.job_id)`;

/**
 * How long deployment `d` had lived when each of its months ended, or at `until`. Months are UTC's, so
 * that no clock change makes one longer.
 */
export const livedByMonth = (until: string): string => `(
  select jsonb_agg(jsonb_build_object('month', to_char(m, 'YYYY-MM-DD'), 'days',
           greatest(0, round((extract(epoch from least(${until}, (m + interval '1 month') at time zone 'UTC')
                              - d.active_at) / 86400)::numeric, 9))) order by m)
  from generate_series(date_trunc('month', d.active_at at time zone 'UTC'),
                       greatest(${until}, d.active_at) at time zone 'UTC', interval '1 month') m
  where m at time zone 'UTC' < greatest(${until}, d.active_at)
     or m = date_trunc('month', d.active_at at time zone 'UTC'))`;
