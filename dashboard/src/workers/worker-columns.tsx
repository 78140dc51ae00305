import type { Worker } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { Meter } from "../ui/bars";
import { ABSENT, formatNumber } from "../ui/format";
import { JobLink } from "../ui/links";
import type { Column } from "../ui/table";
import styles from "./worker-columns.module.css";
import { gpuText, HeartbeatAge, WorkerStatus } from "./worker-state";

export const WORKER_COLUMNS: readonly Column<Worker>[] = [
  {
    id: "status",
    title: "Status",
    width: "112px",
    cell: (worker) => <WorkerStatus worker={worker} />,
  },
  {
    id: "id",
    title: "Worker",
    cell: ({ worker_id }) => (
      <Link to="/workers/$workerId" params={{ workerId: worker_id }} title={worker_id}>
        {worker_id}
      </Link>
    ),
  },
  { id: "gpu", title: "GPU", hideBelow: "phone", cell: (worker) => gpuText(worker) },
  {
    id: "util",
    title: "Util. %",
    width: "112px",
    align: "right",
    hideBelow: "tablet",
    cell: ({ util }) => (
      <Share value={util} of={100} label="Utilisation" text={formatNumber(util)} />
    ),
  },
  {
    id: "memory",
    title: "Memory GB",
    width: "156px",
    align: "right",
    hideBelow: "laptop",
    cell: ({ mem_used, mem_total }) => (
      <Share
        value={mem_used}
        of={mem_total ?? 0}
        label="Memory in use"
        text={`${formatNumber(mem_used, 1)} / ${formatNumber(mem_total, 1)}`}
      />
    ),
  },
  {
    id: "job",
    title: "Job",
    hideBelow: "laptop",
    cell: ({ current_job_id: id }) => (id === null ? ABSENT : <JobLink id={id} />),
  },
  {
    id: "handled",
    title: "Jobs handled",
    width: "104px",
    align: "right",
    hideBelow: "tablet",
    cell: ({ jobs_handled }) => formatNumber(jobs_handled),
  },
  {
    id: "heartbeat",
    title: "Heartbeat",
    width: "96px",
    align: "right",
    cell: ({ last_heartbeat }) => <HeartbeatAge at={last_heartbeat} />,
  },
];

/** A number with a small bar, or a dash if there is nothing to show. */
function Share({
  value,
  of,
  label,
  text,
}: {
  value: number | null;
  of: number;
  label: string;
  text: string;
}) {
  if (value === null || of === 0) return ABSENT;
  return (
    <span className={styles.share}>
      <Meter share={value / of} label={label} />
      {text}
    </span>
  );
}
