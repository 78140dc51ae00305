import { isOlder } from "../../platform/postgres/clock";
import { all, execute, type Queryable } from "../../platform/postgres/pool";
import type { TimeSpan } from "../jobs/job-throughput";

/** The means of a worker's heartbeats since the last sample, and the number of these heartbeats. */
export interface WorkerSample {
  worker_id: string;
  heartbeats: number;
  util: number | null;
  mem_used: number | null;
  mem_total: number | null;
}

const MINUTE = "date_trunc('minute', now())";
/** SQL: the mean of the stored and the new value, weighted by heartbeats. */
const mean = (column: string): string =>
  `coalesce((s.${column} * s.heartbeats + excluded.${column} * excluded.heartbeats) / (s.heartbeats + excluded.heartbeats),
            excluded.${column}, s.${column})`;
const merged = (column: string): string =>
  `${column} = case when s.at = excluded.at then ${mean(column)} else excluded.${column} end`;

/**
 * Writes one sample per worker in one statement. A second sample in the same minute is merged into
 * the first.
 */
export async function writeSamples(db: Queryable, samples: WorkerSample[]): Promise<void> {
  await execute(
    db,
    `insert into worker_samples as s (worker_id, slot, at, heartbeats, util, mem_used, mem_total)
     select worker_id, extract(epoch from ${MINUTE})::bigint / 60 % 1440, ${MINUTE}, given.heartbeats,
            given.util, given.mem_used, given.mem_total
     from json_to_recordset($1) given (worker_id text, heartbeats int, util float8, mem_used float8,
                                       mem_total float8)
     join workers using (worker_id)
     order by worker_id
     on conflict (worker_id, slot) do update set
       at = excluded.at, ${merged("util")}, ${merged("mem_used")}, ${merged("mem_total")},
       heartbeats = case when s.at = excluded.at then s.heartbeats else 0 end + excluded.heartbeats`,
    [JSON.stringify(samples)],
  );
}

export interface SampleBucket {
  at: Date;
  util: number | null;
  util_max: number | null;
  mem_used: number | null;
  mem_total: number | null;
}

/** A worker's samples in a time span, by bucket. Omits empty buckets. */
export async function readSamples(
  db: Queryable,
  workerId: string,
  { since, until, bucketS }: TimeSpan,
) {
  return await all<SampleBucket>(
    db,
    `select date_bin(make_interval(secs => $4), at, 'epoch') as at, avg(util) as util,
            max(util) as util_max, avg(mem_used) as mem_used, max(mem_total) as mem_total
     from worker_samples
     where worker_id = $1 and at >= $2 and at < $3 and at > now() - interval '1 day'
     group by 1 order by 1`,
    [workerId, since, until, bucketS],
  );
}

/** The maximum number of samples of a worker: one for each minute of the day. */
const SLOTS = 1_440;
const DAY = "interval '1 day'";

/**
 * Deletes up to `limit` samples of workers that have been silent for more than a day. Other workers
 * overwrite their old samples with new ones.
 *
 * @returns the number of deleted samples.
 */
export async function deleteOldSamples(db: Queryable, limit: number) {
  return await execute(
    db,
    `delete from worker_samples
     where ctid = any (array(
       select s.place from workers w cross join lateral (
         select ctid as place, at from worker_samples
         where worker_id = w.worker_id order by slot limit ${SLOTS}) s
       where ${isOlder("w.last_heartbeat_at", DAY)} and ${isOlder("s.at", DAY)} limit $1))
     and ${isOlder("at", DAY)}`,
    [limit],
  );
}
