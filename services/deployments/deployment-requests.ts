import { deleteOlder } from "../../platform/postgres/clock";
import { all, execute, type Queryable } from "../../platform/postgres/pool";
import type { TimeSpan } from "../jobs/job-throughput";

/** Counts of a deployment's requests since the last write. */
export interface RequestCounts {
  deployment_id: string;
  requests: number;
  errors: number;
  /** This and `output_tokens` are null if no response reported its tokens. */
  input_tokens: number | null;
  output_tokens: number | null;
  /** Requests by duration (core/deployments/latency.ts). */
  latency: number[];
}

const MINUTE = "date_trunc('minute', now())";
const IS_SAME = "r.at = excluded.at";
const summed = (column: string): string =>
  `${column} = case when ${IS_SAME} then r.${column} else 0 end + excluded.${column}`;
const summedIfKnown = (column: string): string =>
  `${column} = case when ${IS_SAME} and r.${column} is not null
                    then r.${column} + coalesce(excluded.${column}, 0) else excluded.${column} end`;

/** Adds counts to the rows of the current minute, in one statement. */
export async function addRequests(db: Queryable, counts: RequestCounts[]): Promise<void> {
  await execute(
    db,
    `insert into deployment_requests as r (deployment_id, slot, at, requests, errors, input_tokens,
                                           output_tokens, latency)
     select deployment_id, extract(epoch from ${MINUTE})::bigint / 60 % 1440, ${MINUTE}, given.requests,
            given.errors, given.input_tokens, given.output_tokens, given.latency
     from json_to_recordset($1) given (deployment_id text, requests int, errors int, input_tokens bigint,
                                       output_tokens bigint, latency int[])
     join deployments using (deployment_id)
     order by deployment_id
     on conflict (deployment_id, slot) do update set
       at = excluded.at, ${summed("requests")}, ${summed("errors")}, ${summedIfKnown("input_tokens")},
       ${summedIfKnown("output_tokens")},
       latency = case when ${IS_SAME} then (
         select array_agg(coalesce(one, 0) + coalesce(other, 0) order by place)
         from unnest(r.latency, excluded.latency) with ordinality sums (one, other, place))
         else excluded.latency end`,
    [JSON.stringify(counts)],
  );
}

export type RequestMinute = Omit<RequestCounts, "deployment_id"> & {
  /** Start of the time bucket that the minute belongs to. */
  bucket: Date;
};

/** The minutes of a time span that had requests, oldest first. */
export async function listRequests(
  db: Queryable,
  deploymentId: string,
  { since, until, bucketS }: TimeSpan,
) {
  return await all<RequestMinute>(
    db,
    `select date_bin(make_interval(secs => $4), at, 'epoch') as bucket, requests, errors,
            input_tokens::float8 as input_tokens, output_tokens::float8 as output_tokens, latency
     from deployment_requests
     where deployment_id = $1 and at >= $2 and at < $3 and at > now() - interval '1 day'
     order by at`,
    [deploymentId, since, until, bucketS],
  );
}

/**
 * A deployment has one row per minute of the day. A request in the same minute of a later day
 * overwrites the row. Without such a request, the old row would stay, so rows are deleted after a
 * day.
 */
const RETENTION = { table: "deployment_requests", time: "at", age: "interval '1 day'" };

export const deleteOldRequests = (db: Queryable, limit: number): Promise<number> =>
  deleteOlder(db, RETENTION, limit);
