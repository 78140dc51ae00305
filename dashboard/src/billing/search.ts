import { given, readOneOf, readSomeOf, readText, type Search } from "../app/search-params";
import { JOB_TYPES, type JobType } from "../jobs/declared-types";
import { isPeriod } from "./period";

export const BREAKDOWNS = ["type", "tag", "pipeline"] as const;
export type Breakdown = (typeof BREAKDOWNS)[number];

export const SORTS = ["time", "cost"] as const;
export type RecordSort = (typeof SORTS)[number];

export interface BillingSearch {
  /** YYYY-MM in UTC; the current month if undefined. */
  period?: string;
  by?: Breakdown;
  /** Lists only the records of jobs of these types. */
  job_type?: JobType[];
  sort?: RecordSort;
  /** The job whose record is open. */
  record?: string;
}

export function readBillingSearch(search: Search): BillingSearch {
  const period = readText(search, "period");
  return given({
    period: period && isPeriod(period) ? period : undefined,
    by: readOneOf(search, "by", BREAKDOWNS),
    job_type: readSomeOf(search, "job_type", JOB_TYPES),
    sort: readOneOf(search, "sort", SORTS),
    record: readText(search, "record"),
  });
}
