import type { Artifact } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { SWEEP } from "../jobs/declared-types";
import { formatSeconds } from "../jobs/metric-series";
import { Curves } from "../ui/curves";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { formatNumber } from "../ui/format";
import { Section, Stack } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";
import { type Column, Table } from "../ui/table";
import { ARTIFACT_AGE, artifactLink } from "./artifact-columns";
import { numericScores } from "./scores";
import { useEvaluations, useTrainingCurves } from "./use-training";

/** How a model was trained, and how it scored. */
export function Training({ artifact }: { artifact: Artifact }) {
  return (
    <Stack gap={16}>
      <Section title="Training curves">
        <TrainingCurves artifact={artifact} />
      </Section>
      <Section title="Evaluations">
        <Evaluations checkpointId={artifact.artifact_id} />
      </Section>
    </Stack>
  );
}

function TrainingCurves({ artifact }: { artifact: Artifact }) {
  const { data, error, refetch } = useTrainingCurves(artifact);
  if (error && !data) {
    return <ErrorBanner what="The curves could not be loaded" error={error} onRetry={refetch} />;
  }
  if (!data) return <SkeletonLines count={4} />;
  if (data.series.length === 0) {
    return <p className="quiet">Its training saved and reported no curves.</p>;
  }
  const formatX = (x: number): string =>
    data.unit === "steps" ? `step ${formatNumber(x)}` : formatSeconds(x);
  return <Curves series={data.series} formatX={formatX} />;
}

function Evaluations({ checkpointId }: { checkpointId: string }) {
  const { data, error, refetch } = useEvaluations(checkpointId);
  if (error && !data) {
    return (
      <ErrorBanner what="The evaluations could not be loaded" error={error} onRetry={refetch} />
    );
  }
  return (
    <Table
      label="Evaluations"
      columns={columnsOf(data ?? [])}
      rows={data}
      rowId={({ artifact_id }) => artifact_id}
      empty={
        <Empty
          title="No evaluation of this model yet."
          action={
            <Link to="/submit" search={{ type: SWEEP.judged }}>
              Evaluate it
            </Link>
          }
        />
      }
    />
  );
}

/** The maximum number of scores in the table. The evaluation's own page shows all. */
const MAX_SCORES = 4;

function columnsOf(evaluations: readonly Artifact[]): Column<Artifact>[] {
  const names = [...new Set(evaluations.flatMap((each) => Object.keys(scoresOf(each))))];
  const shown = [
    ...names.filter((name) => name === "overall"),
    ...names.filter((name) => name !== "overall"),
  ];
  return [
    artifactLink("Evaluation"),
    {
      id: "data",
      title: "Data",
      hideBelow: "tablet",
      cell: ({ manifest }) =>
        manifest.artifact_type === "eval" ? manifest.datasets.join(", ") : null,
    },
    ...shown.slice(0, MAX_SCORES).map(
      (name, at): Column<Artifact> => ({
        id: `score ${name}`,
        title: name,
        width: "112px",
        align: "right",
        ...(at > 0 && { hideBelow: "tablet" }),
        cell: (each) => formatNumber(scoresOf(each)[name], 4),
      }),
    ),
    ARTIFACT_AGE,
  ];
}

const scoresOf = ({ manifest }: Artifact): Record<string, number> =>
  Object.fromEntries(numericScores(manifest));
