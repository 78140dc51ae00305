import { given, readOneOf, readSomeOf, type Search } from "../app/search-params";

export const DEPLOYMENT_STATUSES = ["active", "stopping", "stopped"] as const;
type DeploymentStatus = (typeof DEPLOYMENT_STATUSES)[number];

export interface DeploymentsSearch {
  status?: DeploymentStatus[];
}

export const readDeploymentsSearch = (search: Search): DeploymentsSearch =>
  given({ status: readSomeOf(search, "status", DEPLOYMENT_STATUSES) });

const DEPLOYMENT_TABS = ["try", "requests", "code", "servers", "bill"] as const;
export type DeploymentTab = (typeof DEPLOYMENT_TABS)[number];

export interface DeploymentSearch {
  tab?: DeploymentTab;
}

export const readDeploymentSearch = (search: Search): DeploymentSearch =>
  given({ tab: readOneOf(search, "tab", DEPLOYMENT_TABS) });
