import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Empty } from "../ui/empty";
import { ListTable, NewRows } from "../ui/list-table";
import { Page } from "../ui/page";
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
    <Page title="Jobs" shows="all">
      <Toolbar end={<NewRows list={list} />}>
        <JobFilters
          search={search}
          onChange={(next) => navigate({ to: "/jobs", search: next, replace: true })}
        />
      </Toolbar>
      <ListTable
        label="Jobs"
        columns={JOB_COLUMNS}
        list={list}
        more="older jobs"
        rowId={({ job_id }) => job_id}
        onOpen={({ job_id }) => navigate({ to: "/jobs/$jobId", params: { jobId: job_id } })}
        empty={isFiltered ? <NothingMatches /> : <NoJobs />}
      />
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
