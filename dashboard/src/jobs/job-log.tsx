import { Stack } from "../ui/page";
import { AttemptSelect } from "./attempt-select";
import { isFinished, type JobData } from "./job-data";
import styles from "./job-log.module.css";
import { readLogQuery, withoutAttempt } from "./log/log-query";
import { LogView } from "./log/log-view";
import type { JobSearch } from "./search";

export interface JobTabProps {
  job: JobData;
  search: JobSearch;
  onChange: (change: Partial<JobSearch>) => void;
}

export function JobLog({ job, search, onChange }: JobTabProps) {
  if (job.attempts === 0) {
    return <p className={styles.none}>There is no log before a worker has started the job.</p>;
  }
  const query = search.q ?? "";
  const requested = readLogQuery(query).attempt ?? search.attempt ?? job.attempts;
  const attempt = Math.min(requested, job.attempts);
  const isLive = !isFinished(job) && attempt === job.attempts;
  return (
    <Stack gap={8}>
      <AttemptSelect
        job={job}
        attempt={attempt}
        onChange={(next) => onChange({ attempt: next, q: withoutAttempt(query) })}
      />
      {requested > attempt && (
        <p className="quiet">{`There is no attempt ${requested}: this is the latest one.`}</p>
      )}
      <LogView
        jobId={job.job_id}
        attempt={attempt}
        isLive={isLive}
        query={query}
        line={search.line}
        emptyText={isLive ? "The worker has written nothing yet." : "This attempt wrote nothing."}
        onChange={onChange}
      />
    </Stack>
  );
}
