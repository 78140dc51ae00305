-- Unfinished jobs are read by id, page by page, to be compared with their workflows. That a job was looked at is
-- noted no more: the column stays for servers of the release before.
create index jobs_unfinished_by_id on jobs (job_id) where status not in ('completed', 'failed');
drop index jobs_unfinished;
