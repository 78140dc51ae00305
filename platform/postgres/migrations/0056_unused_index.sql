-- Nothing reads this index any more, but each attempt that completes writes it. And before the first
-- ANALYZE, Postgres expects it to be empty and reads all of it to find a single attempt.
drop index attempts_successes;
