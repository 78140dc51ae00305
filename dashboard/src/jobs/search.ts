import {
  given,
  readList,
  readOneOf,
  readSomeOf,
  readText,
  type Search,
} from "../app/search-params";
import { JOB_STATUSES, JOB_TYPES, type JobType } from "./declared-types";

type RawStatus = (typeof JOB_STATUSES)[number];

/** The filters of the job list, as in its URL. */
export interface JobsSearch {
  status?: RawStatus[];
  job_type?: JobType[];
  tag?: string[];
  /** A prefix of an id, or a part of a tag or the notes. */
  q?: string;
  error_code?: string[];
  worker_id?: string;
  pipeline_id?: string;
  /** First and last day of submission, both inclusive: YYYY-MM-DD, local time. */
  from?: string;
  to?: string;
  /** Time span in which the job ended: ISO 8601, UTC. Set by links from charts. */
  ended_after?: string;
  ended_before?: string;
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Whether the text is a valid day. JavaScript's own parser reads 31 February as 3 March. */
const isDay = (text: string): boolean => {
  const ms = DAY.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
};

const readDay = (search: Search, name: string): string | undefined => {
  const text = readText(search, name);
  return text && isDay(text) ? text : undefined;
};

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$/;

const readTime = (search: Search, name: string): string | undefined => {
  const text = readText(search, name);
  return text && TIME.test(text) && isDay(text.slice(0, 10)) && !Number.isNaN(Date.parse(text))
    ? text
    : undefined;
};

export const readJobsSearch = (search: Search): JobsSearch =>
  given({
    status: readSomeOf(search, "status", JOB_STATUSES),
    job_type: readSomeOf(search, "job_type", JOB_TYPES),
    tag: readList(search, "tag"),
    q: readText(search, "q"),
    error_code: readList(search, "error_code"),
    worker_id: readText(search, "worker_id"),
    pipeline_id: readText(search, "pipeline_id"),
    from: readDay(search, "from"),
    to: readDay(search, "to"),
    ended_after: readTime(search, "ended_after"),
    ended_before: readTime(search, "ended_before"),
  });

const JOB_TABS = ["overview", "metrics", "log", "artifacts", "bill"] as const;
export type JobTab = (typeof JOB_TABS)[number];

export interface JobSearch {
  tab?: JobTab;
  /** The attempt whose log and curves are shown. Default: the latest. */
  attempt?: number;
  /** A line of the log, counted from 1. */
  line?: number;
  /** Search text for the log. */
  q?: string;
}

const readCount = (search: Search, name: string): number | undefined => {
  const value = Number(readText(search, name));
  return Number.isInteger(value) && value > 0 ? value : undefined;
};

export const readJobSearch = (search: Search): JobSearch =>
  given({
    tab: readOneOf(search, "tab", JOB_TABS),
    attempt: readCount(search, "attempt"),
    line: readCount(search, "line"),
    q: readText(search, "q"),
  });
