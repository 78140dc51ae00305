-- After 0056 and not in it, because this takes the strongest lock, but only for a moment.
drop index attempts_one_live_per_job;
-- Nothing reads this index any more. Before the first ANALYZE, Postgres expected it to be empty, and read
-- all of it to find a single attempt.
drop index attempts_successes;
