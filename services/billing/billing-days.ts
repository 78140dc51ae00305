import type { LivedUntil, MonthShare } from "../../core/billing/accrual";
import { all, execute, type Queryable } from "../../platform/postgres/pool";
import type { BillingRow } from "./billing-records";
import { BEGAN, LIFETIME_BY_MONTH, livedAt, WRITTEN_SHARES } from "./lifetime";

/**
 * The cost of a month's jobs by day (YYYY-MM-DD, UTC) and type, without deployments.
 *
 * @param month the month's first day.
 */
export async function readDayTotals(db: Queryable, userId: string, month: string) {
  return await all<{ day: string; job_type: string; cost_usd: string }>(
    db,
    `select to_char(day, 'YYYY-MM-DD') as day, job_type, cost_usd::text from billing_days
     where user_id = $1 and day >= $2::date and day < $2::date + interval '1 month'`,
    [userId, month],
  );
}

export interface DeploymentMonthRow
  extends Pick<BillingRow, "metrics" | "gpu_tokens" | "attempts" | "rate_card" | "state"> {
  /** Lifetime in days at the month's start; null if the deployment began later. */
  days_before: number | null;
  /** The deployment's lifetime at the end of each day of the month. */
  lived: { day: string; days: number }[];
  /** Lifetime at the end of each month since the deployment began. */
  lived_by_month: LivedUntil[];
  written: MonthShare[];
}

const SPAN = `with span as (
  select $2::timestamp at time zone 'UTC' as start,
         ($2::timestamp + interval '1 month') at time zone 'UTC' as until)`;

/**
 * The deployments that a tenant may be billed for in a month: those with a billing line in the
 * month, and all live ones. Includes each deployment's lifetime at the end of each day of the
 * month.
 */
export async function listDeploymentMonths(db: Queryable, userId: string, month: string) {
  return await all<DeploymentMonthRow>(
    db,
    `${SPAN}
     select b.metrics, b.gpu_tokens, b.attempts, b.rate_card, b.state,
            case when life.began < s.start then ${livedAt("s.start")} end as days_before,
            (select coalesce(jsonb_agg(jsonb_build_object('day', to_char(m, 'YYYY-MM-DD'), 'days',
                      ${livedAt("(m + interval '1 day') at time zone 'UTC'")}) order by m), '[]')
             from generate_series(
               date_trunc('day', greatest(life.began, s.start) at time zone 'UTC'),
               least(coalesce(d.stop_requested_at, now()), s.until - interval '1 microsecond')
                 at time zone 'UTC', interval '1 day') m) as lived,
            ${LIFETIME_BY_MONTH} as lived_by_month, ${WRITTEN_SHARES} as written
     from span s cross join deployments d join billing_records b using (job_id)
     cross join lateral (select ${BEGAN} as began) life
     where d.user_id = $1 and (b.state = 'accruing' or exists (
       select from billing_lines l where l.job_id = d.job_id and l.month = $2::date))`,
    [userId, month],
  );
}

/**
 * SQL: what `billing_days` must contain, summed from the billing lines of all jobs except
 * deployments.
 */
const EXPECTED = `
  select l.user_id, greatest((b.created_at at time zone 'UTC')::date, l.month) as day, b.job_type, sum(l.cost_usd) as cost_usd
  from billing_lines l join billing_records b using (job_id)
  where not exists (select from deployments d where d.job_id = l.job_id)
  group by 1, 2, 3`;

export interface WrongDay {
  user_id: string;
  day: string;
  job_type: string;
  stored: string | null;
  recomputed: string | null;
}

/** Days whose stored amount differs from the sum of their lines. */
export async function listWrongDays(db: Queryable, limit: number) {
  return await all<WrongDay>(
    db,
    `with recomputed as (${EXPECTED})
     select user_id, to_char(day, 'YYYY-MM-DD') as day, job_type, d.cost_usd::text as stored,
            recomputed.cost_usd::text as recomputed
     from recomputed full join billing_days d using (user_id, day, job_type)
     where recomputed.cost_usd is distinct from d.cost_usd order by 1, 2, 3 limit $1`,
    [limit],
  );
}

/** Recomputes all days from the lines. The caller holds a lock that prevents new lines. */
export async function rebuildDays(db: Queryable): Promise<void> {
  await execute(db, "delete from billing_days");
  await execute(db, `insert into billing_days (user_id, day, job_type, cost_usd) ${EXPECTED}`);
}
