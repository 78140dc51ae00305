-- Replaces attempts_one_live_per_job (0057), whose condition every query for queued attempts implies: if
-- the last ANALYZE saw a short queue, Postgres expected that index to be almost empty, and read all of it
-- instead of a few entries of attempts_queue. This condition is the same, because an attempt has ended_at
-- when its state is 'ended'.
create unique index attempts_live on attempts (job_id) where ended_at is null;
