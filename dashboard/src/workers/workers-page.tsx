import type { Worker } from "@forge/sdk";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useMemo } from "react";
import { given } from "../app/search-params";
import { buttonClass } from "../ui/button";
import { ChoiceFilter } from "../ui/choice-filter";
import { Empty, NothingMatches } from "../ui/empty";
import { ErrorBanner, Notice } from "../ui/error-banner";
import { formatNumber, plural } from "../ui/format";
import { Page } from "../ui/page";
import { StatusMark } from "../ui/status-mark";
import { Table } from "../ui/table";
import { TextFilter } from "../ui/text-filter";
import { Toolbar } from "../ui/toolbar";
import { WORKER_STATUSES, type WorkersSearch } from "./search";
import { MAX_WORKERS, useWorkers } from "./use-workers";
import { WORKER_COLUMNS } from "./worker-columns";
import { byTrouble, gpuName, workerMark, workerStateName } from "./worker-state";

const route = getRouteApi("/workers");
export function WorkersPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const { data, error, refetch } = useWorkers();
  const rows = useMemo(
    () => data?.filter((worker) => matches(worker, search)).sort(byTrouble),
    [data, search],
  );
  const gpus = useMemo(() => [...new Set(data?.map(gpuName))].sort(), [data]);
  const change = (next: WorkersSearch): void =>
    void navigate({ to: "/workers", search: given({ ...search, ...next }), replace: true });
  return (
    <Page
      title="Workers"
      shows="all"
      actions={
        <Link to="/workers/add/ssh" className={buttonClass("primary")}>
          <Plus size={14} />
          Add by SSH
        </Link>
      }
    >
      {data && data.length > 0 && (
        <Toolbar end={<Fleet workers={data} />}>
          <TextFilter
            label="Filter by id, GPU, host or tag"
            value={search.q ?? ""}
            onChange={(q) => change({ q })}
          />
          <ChoiceFilter
            title="Status"
            chosen={search.status ?? []}
            options={WORKER_STATUSES}
            onChange={(status) => change({ status })}
            show={(status) => (
              <>
                <StatusMark mark={workerMark({ status })} />
                {workerStateName({ status, draining: false })}
              </>
            )}
          />
          {(gpus.length > 1 || search.gpu) && (
            <ChoiceFilter
              title="GPU"
              chosen={search.gpu ?? []}
              options={gpus}
              onChange={(gpu) => change({ gpu })}
            />
          )}
        </Toolbar>
      )}
      {error && (
        <ErrorBanner what="The list could not be updated" error={error} onRetry={refetch} />
      )}
      {data?.length === MAX_WORKERS && (
        <Notice tone="neutral">{`Only the newest ${formatNumber(MAX_WORKERS)} workers are listed.`}</Notice>
      )}
      {(data || !error) && (
        <Table
          label="Workers"
          columns={WORKER_COLUMNS}
          rows={rows}
          rowId={({ worker_id }) => worker_id}
          onOpen={({ worker_id }) =>
            navigate({ to: "/workers/$workerId", params: { workerId: worker_id } })
          }
          empty={data?.length ? <NothingMatches thing="worker" /> : <NoWorkers />}
        />
      )}
    </Page>
  );
}

const Fleet = ({ workers }: { workers: readonly Worker[] }) => {
  const count = (status: string): number => workers.filter((each) => each.status === status).length;
  const gpus = workers.reduce((sum, each) => sum + each.gpu_count, 0);
  return (
    <span>
      {workers.length} in all: {count("busy")} busy, {count("idle")} idle
      {gpus > 0 && `, ${plural(gpus, "GPU")}`}
    </span>
  );
};

function matches(worker: Worker, { status, gpu: gpus, q }: WorkersSearch): boolean {
  if (status && !status.some((each) => each === worker.status)) return false;
  if (gpus && !gpus.includes(gpuName(worker))) return false;
  if (!q) return true;
  const { worker_id, ssh_host, gpu, gpu_type, tags } = worker;
  const text = [worker_id, ssh_host, gpu.name, gpu_type, ...tags].join(" ").toLowerCase();
  return text.includes(q.toLowerCase());
}

const NoWorkers = () => (
  <Empty
    title="No worker is registered, so jobs wait."
    command={`SERVICE_API_URL=${location.origin} SERVICE_API_KEY=forge_worker_… forge-agent`}
    action={
      <Link to="/workers/add/ssh" className={buttonClass()}>
        Add a machine by SSH
      </Link>
    }
  >
    Run the agent on a machine, with a key of scope worker:
  </Empty>
);
