import type { Pipeline } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { IdText } from "../ui/copy";
import { ABSENT } from "../ui/format";
import { Money } from "../ui/money";
import type { Column } from "../ui/table";
import { Tags } from "../ui/tag";
import { ageColumn, Duration } from "../ui/time";
import styles from "./pipeline-columns.module.css";
import { PipelineStatus, pipelineTitle } from "./pipeline-state";
import { StepMarks } from "./step-marks";

export const PIPELINE_COLUMNS: readonly Column<Pipeline>[] = [
  {
    id: "status",
    title: "Status",
    width: "134px",
    hideBelow: "phone",
    cell: (pipeline) => <PipelineStatus pipeline={pipeline} />,
  },
  {
    id: "name",
    title: "Pipeline",
    cell: (pipeline) => (
      <Link
        to="/pipelines/$pipelineId"
        params={{ pipelineId: pipeline.pipeline_id }}
        className={styles.name}
      >
        <span className={styles.title}>
          <span className="note only-phone">
            <PipelineStatus pipeline={pipeline} />
          </span>
          {pipelineTitle(pipeline)}
        </span>
      </Link>
    ),
  },
  {
    id: "about",
    title: "About",
    hideBelow: "laptop",
    cell: (pipeline) => <About pipeline={pipeline} />,
  },
  {
    id: "id",
    title: "Id",
    width: "150px",
    hideBelow: "laptop",
    cell: ({ pipeline_id }) => <IdText id={pipeline_id} />,
  },
  {
    id: "steps",
    title: "Steps",
    width: "164px",
    hideBelow: "tablet",
    cell: ({ steps }) => <StepMarks steps={steps} />,
  },
  {
    id: "took",
    title: "Took",
    width: "100px",
    align: "right",
    hideBelow: "tablet",
    cell: ({ created_at, completed_at }) => <Duration from={created_at} to={completed_at} />,
  },
  {
    id: "cost",
    title: "Cost USD",
    width: "84px",
    align: "right",
    cell: ({ cost_usd }) => (cost_usd === 0 ? ABSENT : <Money usd={cost_usd} unit={false} />),
  },
  ageColumn("Submitted", { hideBelow: "phone" }),
];

/** Shows the pipeline's error, otherwise its tags, otherwise its template and run. */
function About({ pipeline }: { pipeline: Pipeline }) {
  if (pipeline.error !== null) return <span title={pipeline.error}>{pipeline.error}</span>;
  if (pipeline.tags.length > 0) return <Tags tags={pipeline.tags} />;
  return (
    <span className="quiet">
      {pipeline.name !== null && pipeline.template ? pipeline.template : ""}
      {pipeline.run > 1 && ` run ${pipeline.run}`}
    </span>
  );
}
