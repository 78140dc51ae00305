-- In this order a submission looks for a worker of its tenant, so the number of workers that are idle costs nothing.
create index workers_idle on workers (user_id, gpu_count, gpu_memory_gb, shared, worker_id collate "C")
  where status = 'idle';
-- Most tenants have no shared workers, but each submission asks whether one fits.
create index workers_shared on workers (worker_id) where shared;
-- Without it, a poll only changes columns that no index has.
drop index workers_available;
