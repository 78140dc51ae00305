import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Ban, CopyPlus, RotateCcw } from "lucide-react";
import { useState } from "react";
import { useForge } from "../api/context";
import { Button, buttonClass } from "../ui/button";
import { Id } from "../ui/copy";
import { DetailHeading, NotLoaded, Verdict, WithFacts } from "../ui/detail";
import { ConfirmDialog } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { useHotkeys } from "../ui/hotkeys";
import { Page, Section } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { AttemptsBar } from "./attempts-bar";
import { explainJob, type JobExplanation } from "./explain-job";
import { JobArtifacts } from "./job-artifacts";
import { JobBill } from "./job-bill";
import { isFinished, type JobData } from "./job-data";
import { JobFacts } from "./job-facts";
import { JobLog } from "./job-log";
import { JobMetrics } from "./job-metrics";
import { JobOverview } from "./job-overview";
import { jobMark, jobStateName } from "./job-state";
import type { JobSearch, JobTab } from "./search";
import { useAttempts, useCancelJob, useJob, useRetryJob } from "./use-job";

const route = getRouteApi("/jobs/$jobId");

export function JobPage() {
  const { jobId } = route.useParams();
  const { data: job, error, refetch } = useJob(jobId);
  if (job) return <Loaded job={job} error={error} onRetry={refetch} />;
  return (
    <Page title="Job" above={<Link to="/jobs">Jobs</Link>} heading={<Id id={jobId} />}>
      <NotLoaded thing="job" error={error} onRetry={refetch} />
    </Page>
  );
}

function Loaded({ job, error, onRetry }: { job: JobData; error: unknown; onRetry: () => void }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const forge = useForge();
  const isLive = !isFinished(job);
  const attempts = useAttempts(job.job_id, isLive).data ?? [];
  const artifacts = useQuery({
    queryKey: ["jobs", "artifacts", job.job_id],
    queryFn: ({ signal }) => forge.jobs.artifacts(job.job_id, { signal }),
    enabled: job.raw_status === "completed",
  });
  const change = (next: Partial<JobSearch>): void =>
    void navigate({
      to: "/jobs/$jobId",
      params: { jobId: job.job_id },
      search: { ...search, ...next },
      replace: true,
      // If `resetScroll` is true, the router scrolls the page and its log to the positions saved
      // for this path.
      resetScroll: false,
    });
  const explanation = explainJob(job, attempts);
  return (
    <Page
      title={`${job.job_type} ${jobStateName(job).toLowerCase()}`}
      above={<Link to="/jobs">Jobs</Link>}
      heading={
        <DetailHeading
          mark={jobMark(job)}
          state={jobStateName(job)}
          title={job.job_type}
          id={job.job_id}
        />
      }
      actions={<Actions job={job} />}
    >
      {error !== null && (
        <ErrorBanner what="The job could not be updated" error={error} onRetry={onRetry} />
      )}
      <Why explanation={explanation} onGoTo={(tab) => change({ tab })} />
      <WithFacts label="Facts about the job" facts={<JobFacts job={job} />}>
        {attempts.length > 0 && (
          <Section title="Attempts">
            <AttemptsBar job={job} attempts={attempts} />
          </Section>
        )}
        <Tabs<JobTab>
          value={search.tab ?? "overview"}
          onChange={(tab) => change({ tab })}
          tabs={[
            { id: "overview", title: "Overview", content: <JobOverview job={job} /> },
            {
              id: "metrics",
              title: "Metrics",
              content: <JobMetrics job={job} search={search} onChange={change} />,
            },
            {
              id: "log",
              title: "Log",
              content: <JobLog job={job} search={search} onChange={change} />,
            },
            {
              id: "artifacts",
              title: "Artifacts",
              count: artifacts.data?.length,
              content: (
                <JobArtifacts job={job} artifacts={artifacts.data} error={artifacts.error} />
              ),
            },
            { id: "bill", title: "Bill", content: <JobBill job={job} /> },
          ]}
        />
      </WithFacts>
    </Page>
  );
}

function Why({
  explanation,
  onGoTo,
}: {
  explanation: JobExplanation;
  onGoTo: (tab: JobTab) => void;
}) {
  const { goTo } = explanation;
  return (
    <Verdict
      explanation={explanation}
      action={
        goTo === "workers" ? (
          <Link to="/workers" className={buttonClass("secondary", "small")}>
            See the workers
          </Link>
        ) : (
          goTo && (
            <Button size="small" onClick={() => onGoTo(goTo)}>
              {goTo === "log" ? "Open the log" : "Show artifacts"}
            </Button>
          )
        )
      }
    />
  );
}

function Actions({ job }: { job: JobData }) {
  const [isConfirming, setConfirming] = useState(false);
  const cancel = useCancelJob(job.job_id);
  const retry = useRetryJob(job.job_id);
  const canCancel = !isFinished(job) && !job.cancel_requested_at;
  const navigate = useNavigate();
  const again = (): void => {
    if (!retry.isPending) retry.mutate();
  };
  const clone = (): void => void navigate({ to: "/submit", search: { from: job.job_id } });
  useHotkeys([
    ...(canCancel ? [{ keys: "c", what: "Cancel the job", run: () => setConfirming(true) }] : []),
    { keys: "r", what: "Retry the job", run: again },
    { keys: "e", what: "Clone the job", run: clone },
  ]);
  return (
    <>
      {canCancel && (
        <Button
          kind="danger"
          icon={<Ban size={14} />}
          hotkey="c"
          onClick={() => setConfirming(true)}
        >
          Cancel
        </Button>
      )}
      <Button icon={<RotateCcw size={14} />} hotkey="r" busy={retry.isPending} onClick={again}>
        Retry
      </Button>
      <Button icon={<CopyPlus size={14} />} hotkey="e" onClick={clone}>
        Clone
      </Button>
      <ConfirmDialog
        open={isConfirming}
        onClose={() => setConfirming(false)}
        title="Cancel this job?"
        action="Cancel the job"
        change={cancel}
        refused="The job was not cancelled"
        onConfirm={(close) => cancel.mutate(undefined, { onSuccess: close })}
      >
        <p>It ends as failed with the code cancelled, and no other attempt is made.</p>
        {job.raw_status === "running" && (
          <p>
            Its worker has 20 s to stop. What it has done so far is lost, unless it uploaded a
            checkpoint.
          </p>
        )}
      </ConfirmDialog>
    </>
  );
}
