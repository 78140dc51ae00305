-- Retries that wait for a worker on which their job has not failed: read at every sweep of the scheduler, however many
-- jobs are queued.
create index attempts_retried on attempts (queued_at) where state = 'queued' and attempt > 1;
