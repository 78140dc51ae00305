-- Whether a queued attempt's job is `provisioning_worker`, repeated here so that the scheduler finds the jobs whose
-- status is to change by an index (0046), however many wait. Kept by triggers, because servers of the release
-- before change the status of jobs, too. Both tables at once: who holds a row of one may be about to write the other.
lock table jobs, attempts in access exclusive mode;
alter table attempts add column is_provisioning boolean not null default false;

create function mark_provisioning_attempt() returns trigger language plpgsql as $$
begin
  update attempts set is_provisioning = new.status = 'provisioning_worker'
  where job_id = new.job_id and state = 'queued';
  return null;
end $$;
create trigger jobs_provisioned after update of status on jobs
  for each row when (
    new.status = 'provisioning_worker' and old.status <> 'provisioning_worker'
    or new.status = 'pending' and old.status = 'provisioning_worker')
  execute function mark_provisioning_attempt();

-- An attempt that comes back to the queue comes back with a job that is `pending`.
create function unmark_provisioning_attempt() returns trigger language plpgsql as $$
begin
  new.is_provisioning := false;
  return new;
end $$;
create trigger attempts_dequeued before update of state on attempts
  for each row when (new.is_provisioning and new.state <> 'queued')
  execute function unmark_provisioning_attempt();

update attempts a set is_provisioning = true
from jobs j where j.status = 'provisioning_worker' and a.job_id = j.job_id and a.state = 'queued';
