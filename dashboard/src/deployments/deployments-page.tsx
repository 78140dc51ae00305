import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useList } from "../api/use-list";
import { given } from "../app/search-params";
import { ChoiceFilter } from "../ui/choice-filter";
import { Empty, NothingMatches } from "../ui/empty";
import { ListTable } from "../ui/list-table";
import { Page } from "../ui/page";
import { Toolbar } from "../ui/toolbar";
import { DEPLOYMENT_COLUMNS } from "./deployment-columns";
import { DEPLOYMENT_STATUSES } from "./search";

const route = getRouteApi("/deployments");
const FIRST_DEPLOYMENT = "forge jobs submit deploy --checkpoint ckpt_… --wait";

export function DeploymentsPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const list = useList(["deployments", "list", search], (forge, pageSize) =>
    forge.deployments.list({ ...search, pageSize }),
  );
  const isFiltered = Object.keys(search).length > 0;
  return (
    <Page title="Deployments" shows="all">
      {(isFiltered || (list.rows?.length ?? 0) > 0) && (
        <Toolbar>
          <ChoiceFilter
            title="Status"
            chosen={search.status ?? []}
            options={DEPLOYMENT_STATUSES}
            onChange={(status) =>
              navigate({ to: "/deployments", search: given({ status }), replace: true })
            }
          />
        </Toolbar>
      )}
      <ListTable
        label="Deployments"
        columns={DEPLOYMENT_COLUMNS}
        list={list}
        more="older deployments"
        rowId={({ deployment_id }) => deployment_id}
        onOpen={({ deployment_id }) =>
          navigate({
            to: "/deployments/$deploymentId",
            params: { deploymentId: deployment_id },
          })
        }
        empty={isFiltered ? <NothingMatches thing="deployment" /> : <NoDeployments />}
      />
    </Page>
  );
}

const NoDeployments = () => (
  <Empty
    title="Models that you deploy appear here, each with an address that stays."
    command={FIRST_DEPLOYMENT}
  >
    Deploy a checkpoint that one of your training jobs made, or let a pipeline do it:
  </Empty>
);
