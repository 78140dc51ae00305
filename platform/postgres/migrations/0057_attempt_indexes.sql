-- After 0056 and not in it, because this takes the strongest lock, but only for a moment.
drop index attempts_one_live_per_job;
