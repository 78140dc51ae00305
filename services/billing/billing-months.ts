import type { LivedUntil, MonthShare } from "../../core/billing/accrual";
import type { RateCard } from "../../core/billing/rate-card";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "../jobs/all-jobs";
import type { BillingRow } from "./billing-records";
import { BEGAN, CLOSED_AFTER, LIFETIME_BY_MONTH, WRITTEN_SHARES } from "./lifetime";
import { IS_CLOSED, LAST_CLOSED, UNWRITTEN } from "./storage-months";

/** The totals of a month's lines for one value of a dimension: one job type, tag or pipeline. */
export interface MonthTotal {
  value: string;
  records: number;
  cost_usd: number;
  gpu_hours: number;
  tokens: number;
  unbilled_gpu_hours: number;
}

/**
 * A month's totals, one row per job type.
 *
 * @param month the month's first day.
 */
export async function readTotals(db: Queryable, userId: string, month: string) {
  return await all<MonthTotal>(
    db,
    `select value, records, cost_usd, gpu_hours, tokens, unbilled_gpu_hours from billing_totals
     where user_id = $1 and month = $2 and dimension = 'job_type' order by value`,
    [userId, month],
  );
}

/** The storage line of a month; undefined if it is not written yet, or if storage had no price. */
export async function findStorageLine(db: Queryable, userId: string, month: string) {
  return await maybeOne<{ cost_usd: number; gb_months: number; rate_card: RateCard }>(
    db,
    "select cost_usd, gb_months, rate_card from billing_lines where line_id = 'storage:' || $1 || ':' || left($2, 7)",
    [userId, month],
  );
}

/**
 * Writes a tenant's storage line of a closed month, unless it is already written. Call in a
 * transaction with `requireKnownClock` (ClockWatch): if the clock was set forward, a month could
 * count as closed before its end.
 *
 * @param month the month's first day.
 * @param card the rate card in force at the month's end.
 * @returns whether the line was written.
 */
export async function insertStorageLine(
  db: Queryable,
  userId: string,
  month: string,
  gbMonths: number,
  costUsd: string,
  card: RateCard,
): Promise<boolean> {
  const inserted = await execute(
    db,
    `insert into billing_lines (line_id, user_id, month, cost_usd, gb_months, rate_card)
     select 'storage:' || $1 || ':' || left($2::text, 7), $1, $2::text::date, $3, $4, $5
     where ${IS_CLOSED("$2::text::timestamp")}
     on conflict do nothing`,
    [userId, month, costUsd, gbMonths, card],
  );
  return inserted === 1;
}

/**
 * Live deployments for which the billing line of a closed month is missing.
 *
 * @param after the last id of the previous page.
 */
export async function listUnwrittenDeployments(
  db: Queryable,
  limit: number,
  after = "",
): Promise<string[]> {
  const rows = await all<{ deployment_id: string }>(
    db,
    `select d.deployment_id from deployments d
     where d.status = 'active' and d.deployment_id > $2 and exists (
       select from generate_series(date_trunc('month', ${BEGAN} at time zone 'UTC'),
                                   (now() - ${CLOSED_AFTER}) at time zone 'UTC', interval '1 month') m
       where m + interval '1 month' <= (now() - ${CLOSED_AFTER}) at time zone 'UTC' and not exists (
         select from billing_lines l where l.job_id = d.job_id and l.month = m::date))
     order by d.deployment_id limit $1`,
    [limit, after],
  );
  return rows.map((row) => row.deployment_id);
}

/**
 * A live deployment's bill, and the first month that is not closed (`open`). The caller holds the
 * deployment's lock.
 */
export async function findAccruing(db: Queryable, deploymentId: string) {
  return await maybeOne<AccruingRow & { open: string }>(
    db,
    `select b.*, ${LIFETIME_BY_MONTH} as lived, ${WRITTEN_SHARES} as written, j.tags, j.pipeline_id,
            to_char((now() - ${CLOSED_AFTER}) at time zone 'UTC', 'YYYY-MM-01') as open
     from deployments d join billing_records b using (job_id) join jobs j using (job_id)
     where d.deployment_id = $1 and d.status = 'active' and b.state = 'accruing'`,
    [deploymentId],
  );
}

/**
 * Records how many days of a deployment's lifetime are billed in closed months. Never lowers this
 * number. The billed lifetime is never less than this number (lifetime.ts). Otherwise, if the clock
 * is set back, the bill could become smaller than the sum of the lines of closed months. Lines of
 * closed months never change.
 */
export async function recordClosedDays(
  db: Queryable,
  deploymentId: string,
  days: number,
): Promise<void> {
  await execute(
    db,
    "update deployments set closed_days = greatest(closed_days, $2) where deployment_id = $1",
    [deploymentId, days],
  );
}

/** A closed month whose storage line is missing, although its rate card has a price for storage. */
export interface UnwrittenStorage {
  user_id: string;
  /** The month's first day. */
  month: string;
  card: RateCard;
}

/**
 * Closed months without their storage line, ordered by tenant. Returns at most `limit` months.
 *
 * `storage_months.open_month` is a tenant's first month whose line may be missing. A tenant lacks a
 * line only if that month is closed. So the query reads only these tenants, at most `limit`.
 *
 * @param after the last tenant of the previous page; "" for the first page.
 */
export async function listUnwrittenStorage(db: Queryable, limit: number, after = "") {
  return await all<UnwrittenStorage>(
    db,
    `with behind as materialized (
       select user_id, open_month from storage_months
       where user_id > $2 and open_month <= ${LAST_CLOSED} and ${IS_CLOSED("open_month::timestamp")}
       order by user_id limit $1)
     select s.user_id, to_char(u.m, 'YYYY-MM-DD') as month, u.card
     from behind s cross join lateral (${UNWRITTEN}) u
     order by 1, 2 limit $1`,
    [limit, after],
  );
}

/**
 * A month's costs by tag, or by pipeline. Reads only the `limit` highest costs, and the costs of
 * the tags or pipelines that `also` lists.
 */
export async function readMostExpensive(
  db: Queryable,
  userId: string,
  month: string,
  dimension: "tag" | "pipeline",
  limit: number,
  also: string[],
): Promise<{ value: string; cost_usd: number }[]> {
  // The dimension is inserted as a literal, because the predicate of the index contains it.
  // Postgres would not use the index with a parameter.
  return await all<{ value: string; cost_usd: number }>(
    db,
    `(select value, cost_usd from billing_totals
      where user_id = $1 and month = $2 and dimension = '${dimension}' and cost_usd > 0
      order by cost_usd desc, value limit $3)
     union
     select value, cost_usd from billing_totals
     where user_id = $1 and month = $2 and dimension = '${dimension}' and value = any($4)`,
    [userId, month, limit, also],
  );
}

/** The open bill of a live deployment, with its lifetime at the end of each month so far. */
export interface AccruingRow extends BillingRow {
  lived: LivedUntil[];
  /** The parts of the bill (shares) that already have a billing line, one per month. */
  written: MonthShare[];
  tags: string[];
  pipeline_id: string | null;
}

/** The open bills of a tenant's deployments that began before the month ended. */
export async function listAccruing(db: Queryable, userId: string, month: string) {
  return await all<AccruingRow>(
    db,
    `select b.*, ${LIFETIME_BY_MONTH} as lived, ${WRITTEN_SHARES} as written, j.tags, j.pipeline_id
     from deployments d join billing_records b using (job_id) join jobs j using (job_id)
     where d.user_id = $1 and d.status = 'active' and b.state = 'accruing'
       and ${BEGAN} < ($2::timestamp + interval '1 month') at time zone 'UTC'`,
    [userId, month],
  );
}

/**
 * A tenant's storage in Forge's store during a month, up to now. Equals the sum of the `gb_months`
 * of `measureStorage` (storage.ts), but is computed from the monthly changes of the storage instead
 * of from all artifacts.
 */
export async function readStorage(
  db: Queryable,
  userId: string,
  month: string,
): Promise<{ gb_months: number }> {
  const row = await maybeOne<{ gb_months: number }>(
    db,
    `with bounds as (
       select $2::date as first, $2::timestamp at time zone 'UTC' as since,
              ($2::timestamp + interval '1 month') at time zone 'UTC' as until,
              least(now(), ($2::timestamp + interval '1 month') at time zone 'UTC') as seen),
     stored as (
       select coalesce(sum(bytes) filter (where month < first), 0) as before,
              coalesce(sum(bytes) filter (where month = first), 0) as during,
              coalesce(sum(byte_seconds) filter (where month = first), 0) as byte_seconds
       from bounds left join storage_changes on user_id = $1 and month <= first)
     select round(greatest(0, before * extract(epoch from seen - since) + byte_seconds
                  - during * extract(epoch from until - seen)) / 1e9 / extract(epoch from until - since), 9) as gb_months
     from bounds, stored`,
    [userId, month],
  );
  return row ?? { gb_months: 0 };
}

export interface LineRow {
  line_id: string;
  job_id: string | null;
  job_type: string | null;
  pipeline_id: string | null;
  tags: string[] | null;
  cost_usd: number;
  gpu_hours: number;
  tokens: number;
  gb_months: number | null;
  rate_card: RateCard | null;
  /** YYYY-MM */
  period: string;
  /** The formula of the job's whole bill, even if the line is only part of it. Null for storage. */
  formula: string | null;
  created_at: Date;
}

/**
 * One batch of a month's billed lines, ordered by id.
 *
 * @param after the last id of the previous batch; "" for the first batch.
 */
export async function readLines(
  db: Queryable,
  userId: string,
  month: string,
  after: string,
  limit: number,
) {
  return await all<LineRow>(
    db,
    `select l.line_id, l.job_id, j.job_type, j.pipeline_id, j.tags, l.cost_usd, l.gpu_hours, l.tokens, l.gb_months,
            coalesce(l.rate_card, b.rate_card) as rate_card, to_char(l.month, 'YYYY-MM') as period, b.formula,
            coalesce(b.created_at, l.created_at) as created_at
     from billing_lines l left join ${ALL_JOBS} j using (job_id) left join billing_records b using (job_id)
     where l.user_id = $1 and l.month = $2 and l.line_id > $3 and l.is_billed
     order by l.line_id limit $4`,
    [userId, month, after, limit],
  );
}
