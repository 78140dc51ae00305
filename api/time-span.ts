import { z } from "zod";
import { InvalidRequest } from "../core/errors";
import { givenTime, timestamp } from "../core/timestamp";
import { readClock } from "../platform/postgres/clock";
import type { Queryable } from "../platform/postgres/pool";
import type { TimeSpan } from "../services/jobs/job-throughput";

const DAY_MS = 86_400_000;
const MAX_BUCKETS = 500;
/**
 * Default bucket lengths in seconds. The first one that gives at most MAX_DEFAULT_BUCKETS buckets
 * is used.
 */
const DEFAULT_STEPS = [10, 60, 300, 900, 3_600, 21_600, 86_400];
const MAX_DEFAULT_BUCKETS = 150;

/** A time span divided into buckets. Each bucket starts at a multiple of its length. */
export const timeSpanQuery = {
  since: givenTime.optional().describe("by default a day before `until`"),
  until: givenTime.optional().describe("by default now"),
  bucket_s: z.coerce
    .number()
    .int()
    .min(10)
    .max(31 * 86_400)
    .optional()
    .describe(
      `length of a bucket in seconds; at most ${MAX_BUCKETS} buckets; the default depends on the time span`,
    ),
};

/** The time span in a response. */
export const timeSpanFields = { since: timestamp, until: timestamp, bucket_s: z.int() };

export const showTimeSpan = ({ since, until, bucketS }: TimeSpan) => ({
  since,
  until,
  bucket_s: bucketS,
});

interface Query {
  since?: string | undefined;
  until?: string | undefined;
  bucket_s?: number | undefined;
}

export async function readTimeSpan(db: Queryable, query: Query): Promise<TimeSpan> {
  const until = query.until ?? (await readClock(db));
  const since = query.since ?? new Date(Date.parse(until) - DAY_MS).toISOString();
  const seconds = (Date.parse(until) - Date.parse(since)) / 1000;
  if (seconds <= 0) throw new InvalidRequest('must be before "until"', "since");
  const defaultStep = DEFAULT_STEPS.find((step) => seconds / step <= MAX_DEFAULT_BUCKETS);
  const bucketS =
    query.bucket_s ?? defaultStep ?? Math.ceil(seconds / MAX_DEFAULT_BUCKETS / 86_400) * 86_400;
  if (seconds / bucketS > MAX_BUCKETS) {
    const least = Math.ceil(seconds / MAX_BUCKETS);
    throw new InvalidRequest(`must be at least ${least} for this time span`, "bucket_s");
  }
  return { since, until, bucketS };
}
