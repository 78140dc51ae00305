alter table workers
  -- What the machine's owner lets run there: only these job types, only these tenants. Null: any.
  add column job_types text[],
  add column tenants   text[];

-- Jobs of one shape fit the same workers, so the type is part of a shape now.
update attempts a set shape = j.job_type || a.shape
from jobs j where j.job_id = a.job_id and a.state = 'queued';

alter table attempts
  -- The last file that the attempt left for a later one to go on from.
  add column checkpoint jsonb;
