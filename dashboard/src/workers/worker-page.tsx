import type { WorkerDetail } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useForge, useSigned } from "../api/context";
import { useList } from "../api/use-list";
import { JOB_COLUMNS } from "../jobs/job-columns";
import { plainJob } from "../jobs/job-data";
import { DetailHeading, NotLoaded, Verdict } from "../ui/detail";
import { ErrorBanner } from "../ui/error-banner";
import { ABSENT, formatNumber } from "../ui/format";
import { KeyValue } from "../ui/key-value";
import { JobLink } from "../ui/links";
import { LoadMore } from "../ui/list-table";
import { Page, Section } from "../ui/page";
import { Table } from "../ui/table";
import { Tags } from "../ui/tag";
import { BootstrapSteps } from "./bootstrap-steps";
import { explainWorker } from "./explain-worker";
import { Samples } from "./samples";
import { WorkerActions } from "./worker-actions";
import styles from "./worker-page.module.css";
import { gpuText, HeartbeatAge, WorkerStatus, workerMark, workerStateName } from "./worker-state";

const route = getRouteApi("/workers/$workerId");
const WORKER_POLL_MS = 2_000;

export function WorkerPage() {
  const { workerId } = route.useParams();
  const forge = useForge();
  const { data, error, refetch } = useQuery({
    queryKey: ["workers", "one", workerId],
    queryFn: ({ signal }) => forge.workers.get(workerId, { signal }),
    refetchInterval: WORKER_POLL_MS,
  });
  return (
    <Page
      title={workerId}
      above={<Link to="/workers">Workers</Link>}
      heading={
        <DetailHeading
          title={workerId}
          {...(data && { mark: workerMark(data), state: workerStateName(data) })}
        />
      }
      actions={data && <WorkerActions worker={data} />}
    >
      {(error || !data) && (
        <NotLoaded
          thing="worker"
          missing="There is no worker with this id, or it was decommissioned."
          error={error}
          onRetry={refetch}
        />
      )}
      {data && <Loaded worker={data} />}
    </Page>
  );
}

function Loaded({ worker }: { worker: WorkerDetail }) {
  return (
    <>
      <Verdict explanation={explainWorker(worker)} />
      <Facts worker={worker} />
      <Samples workerId={worker.worker_id} />
      {worker.bootstrap && <BootstrapSteps bootstrap={worker.bootstrap} />}
      <Jobs workerId={worker.worker_id} />
    </>
  );
}

function Facts({ worker }: { worker: WorkerDetail }) {
  const { session } = useSigned();
  const tenant = session.scope === "admin" ? "one tenant" : "your tenant";
  return (
    <div className={styles.facts}>
      <KeyValue
        entries={[
          { name: "Status", value: <WorkerStatus worker={worker} /> },
          {
            name: "Job",
            value: worker.current_job_id ? <JobLink id={worker.current_job_id} /> : ABSENT,
          },
          { name: "Jobs handled", value: formatNumber(worker.jobs_handled) },
          { name: "Last heartbeat", value: <HeartbeatAge at={worker.last_heartbeat} /> },
        ]}
      />
      <KeyValue
        entries={[
          { name: "GPU", value: gpuText(worker) },
          {
            name: "Utilisation",
            value: worker.util === null ? ABSENT : `${formatNumber(worker.util)} %`,
          },
          {
            name: "Memory",
            // A machine without a GPU reports 0. The page shows a dash instead.
            value: worker.mem_total
              ? `${formatNumber(worker.mem_used, 1)} of ${formatNumber(worker.mem_total, 1)} GB`
              : ABSENT,
          },
          { name: "Agent", value: worker.version ?? ABSENT },
        ]}
      />
      <KeyValue
        entries={[
          { name: "Serves", value: worker.shared ? "every tenant" : tenant },
          { name: "Job types", value: worker.job_types?.join(", ") ?? "all" },
          {
            name: "Tags",
            value: worker.tags.length > 0 ? <Tags tags={worker.tags} wrap /> : ABSENT,
          },
          worker.ssh_host !== null && { name: "Host", value: worker.ssh_host },
        ]}
      />
    </div>
  );
}

function Jobs({ workerId }: { workerId: string }) {
  const list = useList(["jobs", "of-worker", workerId], (forge, pageSize) =>
    forge.jobs.list({ worker_id: workerId, pageSize }),
  );
  return (
    <Section title="Jobs">
      {list.error !== null && (
        <ErrorBanner what="Its jobs could not be loaded" error={list.error} />
      )}
      <Table
        label="Jobs of the worker"
        columns={COLUMNS}
        rows={list.rows?.map(plainJob)}
        rowId={({ job_id }) => job_id}
        empty={<p className="quiet">No job has run on it yet.</p>}
      />
      <LoadMore list={list} what="older jobs" />
    </Section>
  );
}

const COLUMNS = JOB_COLUMNS.filter(({ id }) => id !== "worker");
