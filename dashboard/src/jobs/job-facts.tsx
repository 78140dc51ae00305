import { Link } from "@tanstack/react-router";
import { useSigned } from "../api/context";
import { IdText } from "../ui/copy";
import { formatDuration, formatPercent } from "../ui/format";
import { KeyValue } from "../ui/key-value";
import { JobLink, WorkerLink } from "../ui/links";
import { Money } from "../ui/money";
import { Tags } from "../ui/tag";
import { Duration, Time } from "../ui/time";
import type { JobData } from "./job-data";
import { JobStatus } from "./job-state";

export function JobFacts({ job }: { job: JobData }) {
  const { session } = useSigned();
  return (
    <KeyValue
      entries={[
        { name: "Status", value: <JobStatus job={job} /> },
        job.raw_status === "running" &&
          job.progress !== null && { name: "Progress", value: formatPercent(job.progress) },
        job.worker_id !== null && { name: "Worker", value: <WorkerLink id={job.worker_id} /> },
        { name: "Submitted", value: <Time at={job.created_at} /> },
        { name: "Started", value: <Time at={job.started_at} /> },
        { name: "Ended", value: <Time at={job.completed_at} /> },
        { name: "Took", value: <Duration from={job.started_at} to={job.completed_at} /> },
        job.cost_usd === null
          ? job.estimated_cost_usd !== null && {
              name: "Expected cost",
              value: <Money usd={job.estimated_cost_usd} />,
            }
          : { name: "Cost", value: <Money usd={job.cost_usd} digits={6} /> },
        session.scope === "admin" && { name: "Tenant", value: job.user_id },
        { name: "By key", value: job.created_by },
        job.cancelled_by !== null && { name: "Cancelled by", value: job.cancelled_by },
        {
          name: "Workflow",
          value: job.workflow_url ? (
            <a href={job.workflow_url} target="_blank" rel="noreferrer">
              open in Temporal
            </a>
          ) : (
            <IdText id={job.workflow_id} />
          ),
        },
        { name: "Attempts", value: `${job.attempts} of at most ${job.max_attempts}` },
        { name: "Time limit", value: `${formatDuration(job.timeout_s * 1000)} per attempt` },
        job.priority !== 0 && { name: "Priority", value: job.priority },
        job.tags.length > 0 && { name: "Tags", value: <Tags tags={job.tags} wrap /> },
        job.pipeline_id !== null && {
          name: "Pipeline",
          value: (
            <>
              <Link
                to="/pipelines/$pipelineId"
                params={{ pipelineId: job.pipeline_id }}
                search={job.pipeline_step ? { step: job.pipeline_step } : {}}
              >
                <IdText id={job.pipeline_id} />
              </Link>
              {job.pipeline_step && ` step ${job.pipeline_step}`}
            </>
          ),
        },
        job.retried_from !== null && { name: "Retry of", value: <JobLink id={job.retried_from} /> },
        job.notes !== null && { name: "Notes", value: job.notes },
      ]}
    />
  );
}
