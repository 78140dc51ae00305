-- First, because it takes the strongest lock. Polls change available_until; without this index their updates write no
-- index entries (HOT).
drop index workers_available;
-- A submission reads its tenant's idle workers in this order until one fits.
create index workers_idle on workers (user_id, gpu_count, gpu_memory_gb, shared, worker_id collate "C")
  where status = 'idle';
-- Most tenants have no shared workers, but each submission asks whether one fits.
create index workers_shared on workers (worker_id) where shared;
