-- The servers know the job types: a new one needs no change of the schema. A server of the previous release
-- goes on as before, for it writes only the types that these checks allowed.
alter table jobs drop constraint jobs_job_type_check;
alter table pipeline_steps drop constraint pipeline_steps_job_type_check;
