import type { Artifact } from "@forge/sdk";
import { useNavigate } from "@tanstack/react-router";
import { ARTIFACT_AGE, artifactLink } from "../artifacts/artifact-columns";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { formatBytes } from "../ui/format";
import { type Column, Table } from "../ui/table";
import type { JobData } from "./job-data";

const COLUMNS: readonly Column<Artifact>[] = [
  { id: "kind", title: "Kind", width: "150px", cell: ({ kind }) => kind.replaceAll("_", " ") },
  artifactLink("Artifact"),
  {
    id: "size",
    title: "Size",
    width: "90px",
    align: "right",
    cell: ({ size_bytes }) => formatBytes(size_bytes),
  },
  ARTIFACT_AGE,
];

export function JobArtifacts({
  job,
  artifacts,
  error,
}: {
  job: JobData;
  artifacts: Artifact[] | undefined;
  error: unknown;
}) {
  const navigate = useNavigate();
  if (error) return <ErrorBanner what="The artifacts could not be loaded" error={error} />;
  if (job.raw_status !== "completed") {
    return <Empty title="A job registers what it made when it completes." />;
  }
  return (
    <Table
      label="Artifacts of the job"
      columns={COLUMNS}
      rows={artifacts}
      rowId={({ artifact_id }) => artifact_id}
      onOpen={({ artifact_id }) =>
        navigate({ to: "/artifacts/$artifactId", params: { artifactId: artifact_id } })
      }
      empty={<Empty title="The job left no artifact." />}
    />
  );
}
