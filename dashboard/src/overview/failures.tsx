import type { JobCounts } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";
import { type JobData, plainJob } from "../jobs/job-data";
import { JobStatus } from "../jobs/job-state";
import { Section } from "../ui/page";
import { type Column, Table } from "../ui/table";
import { Time } from "../ui/time";
import { useDayAgo } from "./use-day-ago";

const SHOWN = 8;

const COLUMNS: readonly Column<JobData>[] = [
  { id: "status", title: "Status", width: "104px", cell: (job) => <JobStatus job={job} /> },
  {
    id: "type",
    title: "Job",
    width: "88px",
    cell: ({ job_id, job_type }) => (
      <Link to="/jobs/$jobId" params={{ jobId: job_id }} title={job_id}>
        {job_type}
      </Link>
    ),
  },
  {
    id: "error",
    title: "Error",
    cell: ({ error }) => <span title={error ?? undefined}>{error}</span>,
  },
  {
    id: "age",
    title: "Ended",
    width: "96px",
    align: "right",
    hideBelow: "phone",
    cell: ({ completed_at }) => <Time at={completed_at} />,
  },
];

/** The latest failures, and the number of failures in the last day by error code. */
export function Failures({ counts }: { counts: JobCounts | undefined }) {
  const forge = useForge();
  const navigate = useNavigate();
  const dayAgo = useDayAgo();
  const { data } = useQuery({
    queryKey: ["jobs", "failures"],
    queryFn: async () =>
      (await forge.jobs.list({ status: "failed", limit: SHOWN }).page()).items.map(plainJob),
    refetchInterval: POLL_MS,
  });
  const codes = Object.entries(counts?.by_error_code ?? {}).filter(([, count]) => count > 0);
  return (
    <Section
      title="Failures"
      actions={codes.map(([code, count]) => (
        <Link
          key={code}
          to="/jobs"
          search={{ status: ["failed"], error_code: [code], ended_after: dayAgo }}
        >
          {`${code.replaceAll("_", " ")} ${count}`}
        </Link>
      ))}
    >
      <Table
        label="Last failures"
        columns={COLUMNS}
        rows={data}
        rowId={({ job_id }) => job_id}
        onOpen={({ job_id }) => navigate({ to: "/jobs/$jobId", params: { jobId: job_id } })}
        empty={<p className="quiet">No job has failed.</p>}
      />
    </Section>
  );
}
