import type { Pipeline } from "@forge/sdk";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Button } from "../ui/button";
import { Id } from "../ui/copy";
import { DetailHeading, NotLoaded, Verdict, WithFacts } from "../ui/detail";
import { ErrorBanner } from "../ui/error-banner";
import { Page } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { explainPipeline } from "./explain-pipeline";
import { Gantt } from "./gantt";
import { GraphView } from "./graph/graph-view";
import { PipelineActions } from "./pipeline-actions";
import { PipelineFacts } from "./pipeline-facts";
import { PipelineFigures } from "./pipeline-figures";
import { pipelineStateName, pipelineStatusMark, pipelineTitle } from "./pipeline-state";
import type { PipelineSearch, PipelineView } from "./search";
import { StepDetails } from "./step-details";
import { StepsTable } from "./steps-table";
import { usePipeline } from "./use-pipeline";

const route = getRouteApi("/pipelines/$pipelineId");

export function PipelinePage() {
  const { pipelineId } = route.useParams();
  const { data: pipeline, error, refetch } = usePipeline(pipelineId);
  if (pipeline) {
    return <Loaded pipeline={pipeline} error={error} onRetry={refetch} />;
  }
  return (
    <Page
      title="Pipeline"
      above={<Link to="/pipelines">Pipelines</Link>}
      heading={<Id id={pipelineId} />}
    >
      <NotLoaded thing="pipeline" error={error} onRetry={refetch} />
    </Page>
  );
}

function Loaded({
  pipeline,
  error,
  onRetry,
}: {
  pipeline: Pipeline;
  error: unknown;
  onRetry: () => void;
}) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const change = (next: Partial<PipelineSearch>): void =>
    void navigate({
      to: "/pipelines/$pipelineId",
      params: { pipelineId: pipeline.pipeline_id },
      search: { ...search, ...next },
      replace: true,
      resetScroll: false,
    });
  const explanation = explainPipeline(pipeline);
  const { steps } = pipeline;
  const chosen =
    steps.find(({ name }) => name === search.step) ??
    steps.find(({ name }) => name === explanation.step) ??
    steps.at(-1);
  const view = {
    pipeline,
    chosen: chosen?.name,
    onChoose: (step: string) => change({ step }),
  };
  const title = pipelineTitle(pipeline);
  return (
    <Page
      title={`${title} ${pipelineStateName(pipeline).toLowerCase()}`}
      above={<Link to="/pipelines">Pipelines</Link>}
      heading={
        <DetailHeading
          mark={pipelineStatusMark(pipeline.status)}
          state={pipelineStateName(pipeline)}
          title={title}
          id={pipeline.pipeline_id}
        />
      }
      actions={<PipelineActions pipeline={pipeline} />}
    >
      {error !== null && (
        <ErrorBanner what="The pipeline could not be updated" error={error} onRetry={onRetry} />
      )}
      <Verdict
        explanation={explanation}
        action={
          explanation.step !== undefined &&
          explanation.step !== chosen?.name && (
            <Button size="small" onClick={() => change({ step: explanation.step ?? "" })}>
              Show {explanation.step}
            </Button>
          )
        }
      />
      <PipelineFigures pipeline={pipeline} />
      <Tabs<PipelineView>
        value={search.view ?? "graph"}
        onChange={(next) => change({ view: next })}
        tabs={[
          { id: "graph", title: "Graph", content: <GraphView {...view} /> },
          { id: "gantt", title: "Timeline", content: <Gantt {...view} /> },
          { id: "steps", title: "Steps", count: steps.length, content: <StepsTable {...view} /> },
        ]}
      />
      <WithFacts label="Facts about the pipeline" facts={<PipelineFacts pipeline={pipeline} />}>
        {chosen && <StepDetails pipeline={pipeline} step={chosen} />}
      </WithFacts>
    </Page>
  );
}
