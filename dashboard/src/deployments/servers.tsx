import type { DeploymentDetail } from "@forge/sdk";
import { Empty } from "../ui/empty";
import { ABSENT } from "../ui/format";
import { JobLink, WorkerLink } from "../ui/links";
import { type Mark, Status } from "../ui/status-mark";
import { type Column, Table } from "../ui/table";
import { Duration } from "../ui/time";

type Placement = DeploymentDetail["placements"][number] & { isHealthy: boolean };

const OUTCOMES: Record<string, string> = {
  worker_lost: "Worker lost",
  missing: "Missing on its worker",
  unhealthy: "Was unhealthy",
  stopped: "Stopped",
  failed: "Failed to start",
};

function stateOf({ state, outcome, isHealthy }: Placement): { mark: Mark; text: string } {
  switch (state) {
    case "serving":
      return isHealthy
        ? { mark: "completed", text: "Serving" }
        : { mark: "failed", text: "Unhealthy" };
    case "starting":
      return { mark: "provisioning", text: "Starting" };
    case "stopping":
      return { mark: "running", text: "Stopping" };
    default:
      return {
        mark: outcome === "stopped" ? "cancelled" : "failed",
        text: OUTCOMES[outcome ?? ""] ?? "Ended",
      };
  }
}

const COLUMNS: readonly Column<Placement>[] = [
  {
    id: "state",
    title: "State",
    width: "124px",
    cell: (placement) => <Status {...stateOf(placement)} />,
  },
  {
    id: "worker",
    title: "Worker",
    cell: ({ worker_id }) => (worker_id === null ? ABSENT : <WorkerLink id={worker_id} />),
  },
  {
    id: "address",
    title: "Its own address",
    hideBelow: "laptop",
    cell: ({ inference_url }) => (inference_url ? <code>{inference_url}</code> : ABSENT),
  },
  {
    id: "job",
    title: "Job",
    width: "140px",
    hideBelow: "tablet",
    cell: ({ job_id }) => <JobLink id={job_id} />,
  },
  {
    id: "served",
    title: "Served for",
    width: "92px",
    align: "right",
    cell: ({ serving_at, ended_at }) => <Duration from={serving_at} to={ended_at} />,
  },
];

/** All servers that the deployment ever had, newest first. Says why a server has ended. */
export function Servers({
  deployment: { placements, replicas },
}: {
  deployment: DeploymentDetail;
}) {
  const replicaOf = ({ worker_id, state }: (typeof placements)[number]) =>
    replicas.find((each) => each.worker_id === worker_id && each.state === state);
  const rows = [...placements]
    .sort((a, b) => b.placement - a.placement)
    .map((placement) => ({ ...placement, isHealthy: replicaOf(placement)?.healthy ?? true }));
  return (
    <Table
      label="Servers"
      columns={COLUMNS}
      rows={rows}
      rowId={({ placement }) => String(placement)}
      empty={<Empty title="No server was started yet." />}
    />
  );
}
