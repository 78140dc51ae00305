import { given, readOneOf, readText, type Search } from "../app/search-params";
import { JOB_TYPES, type JobType } from "../jobs/declared-types";

export interface SubmitSearch {
  type?: JobType;
  /** The job whose payload fills the form. */
  from?: string;
}

export const readSubmitSearch = (search: Search): SubmitSearch =>
  given({ type: readOneOf(search, "type", JOB_TYPES), from: readText(search, "from") });
