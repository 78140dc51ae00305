import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { given } from "../app/search-params";
import { Button, buttonClass } from "../ui/button";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { useHotkeys } from "../ui/hotkeys";
import { LoadMore } from "../ui/load-more";
import { Page } from "../ui/page";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { PIPELINE_COLUMNS } from "./pipeline-columns";
import { PipelineFilters } from "./pipeline-filters";
import { usePipelineList } from "./use-pipeline-list";

const route = getRouteApi("/pipelines");
const FIRST_PIPELINE = [
  "forge pipelines run --template synthetic --skip audit --skip distill --skip deploy",
  "--set generate.domain=sums --set generate.num_samples=400 --set train.model=builtin:tiny --wait",
].join(
  " \
  ",
);

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
      actions={
        <Link to="/pipelines/new" className={buttonClass("primary")}>
          <Plus size={14} />
          New pipeline
        </Link>
      }
    >
      <Toolbar
        end={
          list.newCount > 0 && (
            <Button kind="primary" onClick={list.showNew}>
              {list.newCount} new
            </Button>
          )
        }
      >
        <PipelineFilters
          search={search}
          onChange={(next) => navigate({ to: "/pipelines", search: given(next), replace: true })}
        />
      </Toolbar>
      {list.error !== null && (
        <ErrorBanner what="The list could not be updated" error={list.error} onRetry={list.retry} />
      )}
      {(list.rows !== undefined || list.error === null) && (
        <Table
          label="Pipelines"
          columns={PIPELINE_COLUMNS}
          rows={list.rows}
          rowId={({ pipeline_id }) => pipeline_id}
          onOpen={({ pipeline_id }) =>
            navigate({ to: "/pipelines/$pipelineId", params: { pipelineId: pipeline_id } })
          }
          empty={isFiltered ? <NothingMatches /> : <NoPipelines />}
        />
      )}
      <LoadMore list={list} what="older pipelines" />
    </Page>
  );
}

const NothingMatches = () => (
  <Empty
    title="No pipeline matches these filters."
    action={
      <Link to="/pipelines" search={{}}>
        Clear all filters
      </Link>
    }
  />
);

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
