import { Link } from "@tanstack/react-router";
import { Meter } from "../ui/bars";
import { IdText } from "../ui/copy";
import { cx } from "../ui/cx";
import { ABSENT, formatPercent } from "../ui/format";
import { Money } from "../ui/money";
import type { Column } from "../ui/table";
import { Tags } from "../ui/tag";
import { ageColumn, Duration } from "../ui/time";
import styles from "./job-columns.module.css";
import type { JobData } from "./job-data";
import { JobStatus } from "./job-state";

export const JOB_COLUMNS: readonly Column<JobData>[] = [
  {
    id: "status",
    title: "Status",
    width: "124px",
    cell: (job) => <JobStatus job={job} />,
  },
  {
    id: "type",
    title: "Type",
    width: "84px",
    hideBelow: "phone",
    cell: ({ job_type }) => job_type,
  },
  {
    id: "id",
    title: "Job",
    cell: ({ job_id, job_type }) => (
      <Link to="/jobs/$jobId" params={{ jobId: job_id }} className={styles.id}>
        <span className={cx("only-phone", styles.type)}>{job_type}</span>
        <IdText id={job_id} />
      </Link>
    ),
  },
  {
    id: "about",
    title: "About",
    // Wide, because the reason for waiting or failing is more important than a complete id.
    width: "28%",
    hideBelow: "laptop",
    cell: (job) => <About job={job} />,
  },
  {
    id: "worker",
    title: "Worker",
    width: "132px",
    hideBelow: "laptop",
    cell: ({ worker_id }) => worker_id ?? ABSENT,
  },
  {
    id: "took",
    title: "Took",
    width: "88px",
    align: "right",
    hideBelow: "tablet",
    cell: ({ started_at, completed_at }) => <Duration from={started_at} to={completed_at} />,
  },
  {
    id: "cost",
    title: "Cost USD",
    width: "84px",
    align: "right",
    hideBelow: "laptop",
    cell: ({ cost_usd }) => <Money usd={cost_usd} unit={false} />,
  },
  ageColumn("Submitted"),
];

/**
 * Shows the first of these that the job has: error, reason for waiting, progress, tags, payload.
 */
function About({ job }: { job: JobData }) {
  if (job.raw_status === "failed" && job.error_code !== "cancelled") {
    return <span title={job.error ?? undefined}>{job.error}</span>;
  }
  if (job.pending_reason) {
    return <span title={job.pending_reason.message}>{job.pending_reason.message}</span>;
  }
  if (job.raw_status === "running" && job.progress !== null) {
    return (
      <span className={styles.progress}>
        <Meter share={job.progress} label={`Progress of ${job.job_id}`} />
        {formatPercent(job.progress)}
      </span>
    );
  }
  if (job.tags.length > 0) return <Tags tags={job.tags} />;
  const text = Object.values(job.payload)
    .filter((value) => typeof value === "string" || typeof value === "number")
    .slice(0, 3)
    .join(" · ");
  return (
    <span className="quiet" title={text}>
      {text}
    </span>
  );
}
