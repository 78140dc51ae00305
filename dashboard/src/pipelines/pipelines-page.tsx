import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { given } from "../app/search-params";
import { buttonClass } from "../ui/button";
import { Empty, NothingMatches } from "../ui/empty";
import { useHotkeys } from "../ui/hotkeys";
import { ListTable, NewRows } from "../ui/list-table";
import { Page } from "../ui/page";
import { Toolbar } from "../ui/toolbar";
import { PIPELINE_COLUMNS } from "./pipeline-columns";
import { PipelineFilters } from "./pipeline-filters";
import { usePipelineList } from "./use-pipeline-list";

const route = getRouteApi("/pipelines");
const FIRST_PIPELINE = [
  "forge pipelines run --template synthetic --skip audit --skip distill --skip deploy",
  "--set generate.domain=sums --set generate.num_samples=400 --set train.model=builtin:tiny --wait",
].join(" \\\n  ");

export function PipelinesPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const list = usePipelineList(search);
  const isFiltered = Object.keys(search).length > 0;
  useHotkeys([
    { keys: "n", what: "New pipeline", run: () => void navigate({ to: "/pipelines/new" }) },
  ]);
  return (
    <Page
      title="Pipelines"
      shows="all"
      actions={
        <Link to="/pipelines/new" className={buttonClass("primary")}>
          <Plus size={14} />
          New pipeline
        </Link>
      }
    >
      <Toolbar end={<NewRows list={list} />}>
        <PipelineFilters
          search={search}
          onChange={(next) => navigate({ to: "/pipelines", search: given(next), replace: true })}
        />
      </Toolbar>
      <ListTable
        label="Pipelines"
        columns={PIPELINE_COLUMNS}
        list={list}
        more="older pipelines"
        rowId={({ pipeline_id }) => pipeline_id}
        onOpen={({ pipeline_id }) =>
          navigate({ to: "/pipelines/$pipelineId", params: { pipelineId: pipeline_id } })
        }
        empty={isFiltered ? <NothingMatches thing="pipeline" /> : <NoPipelines />}
      />
    </Page>
  );
}

const NoPipelines = () => (
  <Empty
    title="Pipelines that you submit appear here."
    command={FIRST_PIPELINE}
    action={
      <Link to="/pipelines/new" className={buttonClass()}>
        Fill in a form instead
      </Link>
    }
  >
    A pipeline runs jobs in order: generate, train, evaluate, deploy. Submit the first one with the
    command forge:
  </Empty>
);
