import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Empty, NothingMatches } from "../ui/empty";
import { ListTable, NewRows } from "../ui/list-table";
import { Page } from "../ui/page";
import { Toolbar } from "../ui/toolbar";
import { JOB_COLUMNS } from "./job-columns";
import { FIRST_JOB } from "./job-data";
import { JobFilters } from "./job-filters";
import { useJobList } from "./use-job-list";

const route = getRouteApi("/jobs");

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
        empty={isFiltered ? <NothingMatches thing="job" /> : <NoJobs />}
      />
    </Page>
  );
}

const NoJobs = () => (
  <Empty title="Jobs that you submit appear here." command={FIRST_JOB}>
    Submit the first one with the command forge:
  </Empty>
);
