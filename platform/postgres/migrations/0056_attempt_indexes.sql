-- If the last ANALYZE saw few attempts in a state, Postgres expects an index of that state to be almost
-- empty, and may read all of it instead of a few entries of another index.

-- Nothing reads this index any more.
drop index attempts_successes;
-- No query for queued attempts has this condition, so none can read this index instead of
-- attempts_queue. It is the same condition as before: an attempt has ended_at when its state is 'ended'.
drop index attempts_one_live_per_job;
create unique index attempts_one_live_per_job on attempts (job_id) where ended_at is null;
