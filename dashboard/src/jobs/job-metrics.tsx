import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";
import { Curves } from "../ui/curves";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { Stack } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";
import { AttemptSelect } from "./attempt-select";
import { isFinished } from "./job-data";
import type { JobTabProps } from "./job-log";
import styles from "./job-log.module.css";
import { formatSeconds, seriesOf } from "./metric-series";

const REPORT = `echo '::forge {"progress": 0.4, "metrics": {"loss": 1.3}}'`;

/** The metrics of an attempt as curves that grow while it runs. */
export function JobMetrics({ job, search, onChange }: JobTabProps) {
  const forge = useForge();
  const attempt = Math.min(search.attempt ?? job.attempts, job.attempts);
  const isLive = !isFinished(job) && attempt === job.attempts;
  const { data, error, refetch } = useQuery({
    // `isLive` is part of the query key: when the attempt ends, the new key causes a last fetch.
    queryKey: ["jobs", "metrics", job.job_id, attempt, isLive],
    queryFn: ({ signal }) =>
      forge.jobs.metrics(job.job_id, { attempt, max_points: 1_000 }, { signal }),
    placeholderData: (before) => before,
    refetchInterval: isLive ? POLL_MS : false,
    enabled: attempt > 0,
    meta: { live: false },
  });
  if (attempt === 0) {
    return <p className={styles.none}>There are no curves before a worker has started the job.</p>;
  }
  const series = data ? seriesOf(data) : [];
  return (
    <Stack gap={8}>
      <AttemptSelect job={job} attempt={attempt} onChange={(next) => onChange({ attempt: next })} />
      {error && (
        <ErrorBanner what="The curves could not be updated" error={error} onRetry={refetch} />
      )}
      {!data && !error && <SkeletonLines count={6} />}
      {data && series.length === 0 && (
        <Empty
          title={
            isLive
              ? "The worker has reported no numbers yet."
              : "The worker reported no numbers while it ran."
          }
          command={REPORT}
        >
          A handler reports numbers by lines such as this one, and they become curves here:
        </Empty>
      )}
      <Curves series={series} formatX={formatSeconds} />
    </Stack>
  );
}
