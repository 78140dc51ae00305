import { secondsSince } from "../../platform/postgres/clock";
import { all, execute, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "../jobs/all-jobs";
import type { DueLine } from "./usage-exporter";

/**
 * Claims due lines: leases them for `leaseS` seconds, so that no lock is held while they are sent.
 *
 * - Each claim increments `export_tries`. If this number has changed, the line was claimed again,
 *   and `postponeLine` and `releaseLines` do nothing.
 * - `export_asked_at` is the time of the first claim whose result is not known. While it is set,
 *   the receiver may have the line.
 *
 * Call it in a transaction with `requireKnownClock` (ClockWatch). Otherwise `age_s` may include
 * time that the database's clock skipped when it was set forward, and the exporter may refuse a
 * line as too old.
 */
export async function claimLines(
  db: Queryable,
  options: { leaseS: number; limit: number; needsCustomer: boolean },
) {
  return await all<DueLine>(
    db,
    `with due as (
       select l.line_id, l.job_id, l.export_asked_at, u.payment_customer_id
       from billing_lines l join users u using (user_id)
       where l.exported_at is null and l.cost_usd > 0 and l.export_due_at <= now()
         and (u.payment_customer_id is not null or not $3)
       order by l.export_due_at limit $2 for update of l skip locked)
     update billing_lines l
     set export_due_at = now() + make_interval(secs => $1), export_tries = l.export_tries + 1,
         export_error = null, export_asked_at = coalesce(l.export_asked_at, now())
     from due left join ${ALL_JOBS} j on j.job_id = due.job_id
     where l.line_id = due.line_id
     returning l.line_id, l.user_id, due.payment_customer_id as customer_id,
       to_char(l.month, 'YYYY-MM') as month, l.job_id, j.job_type, l.cost_usd::text as cost_usd,
       l.gpu_hours, l.tokens, l.gb_months, l.created_at, l.export_tries as tries,
       ${secondsSince("l.created_at")} as age_s,
       extract(epoch from now() - due.export_asked_at)::float8 as in_doubt_s`,
    [options.leaseS, options.limit, options.needsCustomer],
  );
}

/**
 * Makes lines due again that an earlier version of Forge had marked as too old to export
 * (`export_due_at` is infinity). When the clock was set forward, that version added the skipped
 * time to a line's age. So some of these lines are younger than it computed.
 */
export async function reopenLines(db: Queryable, limit: number) {
  return await execute(
    db,
    `update billing_lines set export_due_at = now() where line_id = any (array(
       select line_id from billing_lines
       where exported_at is null and cost_usd > 0 and export_due_at = 'infinity'
       order by line_id limit $1 for no key update))`,
    [limit],
  );
}

/**
 * Marks a line exported. Has an effect even if the caller's lease has expired, because the receiver
 * has the line.
 */
export async function markExported(
  db: Queryable,
  lineId: string,
  warning: string | null,
): Promise<void> {
  await execute(
    db,
    `update billing_lines set exported_at = now(), export_error = $2
     where line_id = $1 and exported_at is null`,
    [lineId, warning],
  );
}

/**
 * Records a failed delivery. Returns false, and changes nothing, if the line was exported or
 * claimed again.
 */
export async function postponeLine(
  db: Queryable,
  line: Pick<DueLine, "line_id" | "tries">,
  failure: { forS: number; reason: string; isInDoubt: boolean },
): Promise<boolean> {
  const postponed = await execute(
    db,
    `update billing_lines
     set export_due_at = now() + make_interval(secs => $3::float8),
         export_error = $4, export_asked_at = case when $5::boolean then export_asked_at end
     where line_id = $1 and exported_at is null and export_tries = $2`,
    [line.line_id, line.tries, failure.forS, failure.reason, failure.isInDoubt],
  );
  return postponed === 1;
}

/** Undoes the claim of lines that were not sent. */
export async function releaseLines(
  db: Queryable,
  lines: Pick<DueLine, "line_id" | "tries" | "in_doubt_s">[],
): Promise<void> {
  await execute(
    db,
    `with released as materialized (
       select l.line_id, r.is_in_doubt
       from billing_lines l join unnest($1::text[], $2::integer[], $3::boolean[]) r (line_id, tries, is_in_doubt)
         using (line_id)
       where l.exported_at is null and l.export_tries = r.tries
       order by l.line_id for no key update of l)
     update billing_lines l
     set export_due_at = now(), export_tries = l.export_tries - 1,
         export_asked_at = case when r.is_in_doubt then l.export_asked_at end
     from released r where l.line_id = r.line_id`,
    [
      lines.map((line) => line.line_id),
      lines.map((line) => line.tries),
      lines.map((line) => line.in_doubt_s !== null),
    ],
  );
}

/**
 * Postpones due lines whose tenant has no payment customer. Otherwise every claim would read and
 * skip them again.
 */
export async function suspendLines(db: Queryable, forS: number, limit: number) {
  return await execute(
    db,
    `with due as (
       select l.line_id from billing_lines l join users u using (user_id)
       where l.exported_at is null and l.cost_usd > 0 and l.export_due_at <= now()
         and u.payment_customer_id is null
       order by l.export_due_at limit $2 for update of l skip locked)
     update billing_lines l
     set export_due_at = now() + make_interval(secs => $1),
         export_error = 'no_customer: the user has no payment customer id'
     from due where l.line_id = due.line_id`,
    [forS, limit],
  );
}

/**
 * Makes a user's postponed lines due now: lines whose last delivery failed, and lines that
 * `suspendLines` postponed. Skips lines that are being delivered.
 */
export async function retryPostponedLines(db: Queryable, userId: string, limit: number) {
  return await execute(
    db,
    `with waiting as (
       select line_id from billing_lines
       where user_id = $1 and exported_at is null and cost_usd > 0 and export_due_at > now()
         and export_error is not null
       limit $2 for update skip locked)
     update billing_lines l set export_due_at = now() from waiting where l.line_id = waiting.line_id`,
    [userId, limit],
  );
}
