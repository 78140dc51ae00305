import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Button } from "../ui/button";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { LoadMore } from "../ui/load-more";
import { Page } from "../ui/page";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { JOB_COLUMNS } from "./job-columns";
import { JobFilters } from "./job-filters";
import { useJobList } from "./use-job-list";

const route = getRouteApi("/jobs");
const FIRST_JOB = "forge jobs submit generate --domain law --num-samples 20 --wait";

export function JobsPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const list = useJobList(search);
  const isFiltered = Object.keys(search).length > 0;
  return (
    <Page title="Jobs">
      <Toolbar
        end={
          list.newCount > 0 && (
            <Button kind="primary" onClick={list.showNew}>
              {list.newCount} new
            </Button>
          )
        }
      >
        <JobFilters
          search={search}
          onChange={(next) => navigate({ to: "/jobs", search: next, replace: true })}
        />
      </Toolbar>
      {list.error !== null && (
        <ErrorBanner what="The list could not be updated" error={list.error} onRetry={list.retry} />
      )}
      {(list.rows !== undefined || list.error === null) && (
        <Table
          label="Jobs"
          columns={JOB_COLUMNS}
          rows={list.rows}
          rowId={({ job_id }) => job_id}
          onOpen={({ job_id }) => navigate({ to: "/jobs/$jobId", params: { jobId: job_id } })}
          empty={isFiltered ? <NothingMatches /> : <NoJobs />}
        />
      )}
      <LoadMore list={list} what="older jobs" />
    </Page>
  );
}

const NothingMatches = () => (
  <Empty
    title="No job matches these filters."
    action={
      <Link to="/jobs" search={{}}>
        Clear all filters
      </Link>
    }
  />
);

const NoJobs = () => (
  <Empty title="Jobs that you submit appear here." command={FIRST_JOB}>
    Submit the first one with the command forge:
  </Empty>
);
