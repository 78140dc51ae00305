import {
  given,
  readList,
  readOneOf,
  readSomeOf,
  readText,
  type Search,
} from "../app/search-params";

export const JOB_TYPES = ["generate", "audit", "distill", "train", "evaluate", "deploy"] as const;
export type JobType = (typeof JOB_TYPES)[number];

export const JOB_STATUSES = [
  "pending",
  "provisioning_worker",
  "assigned",
  "running",
  "completed",
  "failed",
] as const;
type RawStatus = (typeof JOB_STATUSES)[number];

/** The filters of the job list, as they stand in its address. */
export interface JobsSearch {
  status?: RawStatus[];
  job_type?: JobType[];
  tag?: string[];
  /** The beginning of an id, or a part of a tag or of the notes. */
  q?: string;
  error_code?: string[];
  worker_id?: string;
  pipeline_id?: string;
  /** Submitted from this day on, and before the end of that one: YYYY-MM-DD, local. */
  from?: string;
  to?: string;
  /** Ended within this time span, as a chart gives it: ISO 8601, UTC. */
  ended_after?: string;
  ended_before?: string;
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** A day of the calendar; JavaScript itself reads 31 February as 3 March. */
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
  /** Whose log and curves; without it the latest attempt's. */
  attempt?: number;
  /** A line of the log, counted from 1. */
  line?: number;
  /** What the log is searched for. */
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
