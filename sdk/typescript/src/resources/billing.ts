import { idOf, type JobRef } from "../job.ts";
import type { Listing, ListOptions } from "../listing.ts";
import type { OfUser, RequestOptions } from "../options.ts";
import { get, path, post, put } from "../request.ts";
import type {
  AuditEntry,
  BillingRecord,
  BillingSummary,
  DailyBilling,
  Estimate,
  Operations,
  Rates,
} from "../schema.ts";
import { Resource } from "./resource.ts";

export interface RecordFilters extends ListOptions, OfUser {
  /** Default: all months. */
  period?: string | undefined;
  job_type?: BillingRecord["job_type"] | readonly BillingRecord["job_type"][] | undefined;
  /** `time`: newest first; `cost`: most expensive first. */
  sort?: "time" | "cost" | undefined;
}

export type BudgetAnswer = Operations["getBudget"]["answer"];

/**
 * `client.billing`. A period is a month in UTC, such as `2026-11`. Default: this month, except for
 * `records`.
 */
export class Billing extends Resource {
  /**
   * Summarizes a month's costs by type, tag and pipeline.
   *
   * The result also has the estimated invoice, the forecast and the budget.
   */
  async summary(
    period?: string | null,
    { user_id }: OfUser = {},
    options?: RequestOptions,
  ): Promise<BillingSummary> {
    return await this.transport.json(get("/api/billing/summary", { period, user_id }), options);
  }

  /** Reads the cost of each day of a month, by job type. The sum is the total of `summary`. */
  async daily(
    period?: string | null,
    { user_id }: OfUser = {},
    options?: RequestOptions,
  ): Promise<DailyBilling> {
    return await this.transport.json(get("/api/billing/daily", { period, user_id }), options);
  }

  /** Lists the bills of jobs, newest or most expensive first. `limit`: maximum number in total. */
  records(filters: RecordFilters = {}, options?: RequestOptions): Listing<BillingRecord> {
    return this.listing({ path: "/api/billing/records", name: "records", query: filters, options });
  }

  /** Reads the bill of one job, with the formula and its numbers. */
  async record(job: JobRef, options?: RequestOptions): Promise<BillingRecord> {
    return await this.transport.json(get(path`/api/billing/records/${idOf(job)}`), options);
  }

  /** Reads the rates for a job submitted now. */
  async rates({ user_id }: OfUser = {}, options?: RequestOptions): Promise<Rates> {
    return await this.transport.json(get("/api/billing/rates", { user_id }), options);
  }

  /** Estimates the cost of a job, with a range. Does not submit it. */
  async estimate(jobType: string, payload: object, options?: RequestOptions): Promise<Estimate> {
    const request = post("/api/billing/estimate", { job_type: jobType, payload });
    return await this.transport.json(request, options);
  }

  /** Reads the monthly cap and the current usage. */
  async budget({ user_id }: OfUser = {}, options?: RequestOptions): Promise<BudgetAnswer> {
    return await this.transport.json(get("/api/billing/budget", { user_id }), options);
  }

  /**
   * Sets the monthly cap. null removes it.
   *
   * When the month's costs reach `warning_usd`, submissions return a warning. Default: 80 % of the
   * cap. null disables the warning.
   */
  async setBudget(
    capUsd: number | null,
    { warning_usd, user_id }: OfUser & { warning_usd?: number | null | undefined } = {},
    options?: RequestOptions,
  ): Promise<BudgetAnswer> {
    const body = { cap_usd: capUsd, warning_usd };
    return await this.transport.json(put("/api/billing/budget", body, { user_id }), options);
  }

  /** Exports a month's billing lines as CSV. */
  async export(
    period?: string | null,
    { user_id }: OfUser = {},
    options?: RequestOptions,
  ): Promise<string> {
    const request = get("/api/billing/export", { period, user_id });
    return await this.transport.text({ ...request, headers: { Accept: "text/csv" } }, options);
  }

  /** Lists changes of budgets and other settings, newest first. */
  audit(filters: ListOptions & OfUser = {}, options?: RequestOptions): Listing<AuditEntry> {
    return this.listing({ path: "/api/audit", name: "entries", query: filters, options });
  }
}
