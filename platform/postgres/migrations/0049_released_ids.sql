-- Jobs that an operator has ended before: the ids of their artifacts are free, and their files are swept.
update artifacts r set given_id = 'released:' || r.job_id
from jobs j where j.job_id = r.job_id and j.status = 'failed' and r.registered_at is null;
update jobs j set swept_at = null
from artifacts r where r.job_id = j.job_id and j.status = 'failed' and r.registered_at is null;
