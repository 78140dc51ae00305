import type { DeploymentDetail } from "@forge/sdk";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { CopyButton, Id } from "../ui/copy";
import { DetailHeading, NotLoaded, Verdict, WithFacts } from "../ui/detail";
import { ErrorBanner } from "../ui/error-banner";
import { Page } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { CodeTab } from "./code-tab";
import { DeploymentActions } from "./deployment-actions";
import { DeploymentBill } from "./deployment-bill";
import { DeploymentFacts } from "./deployment-facts";
import { DeploymentFigures } from "./deployment-figures";
import styles from "./deployment-page.module.css";
import { deploymentMark, deploymentStateName } from "./deployment-state";
import { explainDeployment } from "./explain-deployment";
import { Requests } from "./requests";
import type { DeploymentTab } from "./search";
import { Servers } from "./servers";
import { TryIt } from "./try-it";
import { useDeployment } from "./use-deployment";

const route = getRouteApi("/deployments/$deploymentId");

export function DeploymentPage() {
  const { deploymentId } = route.useParams();
  const { data, error, refetch } = useDeployment(deploymentId);
  if (data) return <Loaded deployment={data} error={error} onRetry={refetch} />;
  return (
    <Page
      title="Deployment"
      above={<Link to="/deployments">Deployments</Link>}
      heading={<Id id={deploymentId} />}
    >
      <NotLoaded thing="deployment" error={error} onRetry={refetch} />
    </Page>
  );
}

/** Returns the deployment's stable address as a full URL. The API returns a path on this server. */
const addressOf = ({ url }: DeploymentDetail): string => new URL(url, location.origin).href;

function Loaded({
  deployment,
  error,
  onRetry,
}: {
  deployment: DeploymentDetail;
  error: unknown;
  onRetry: () => void;
}) {
  const { tab } = route.useSearch();
  const navigate = useNavigate();
  const { deployment_id: id, placements } = deployment;
  const state = deploymentStateName(deployment);
  const explanation = explainDeployment(deployment);
  const address = addressOf(deployment);
  return (
    <Page
      title={`Deployment ${state.toLowerCase()}`}
      above={<Link to="/deployments">Deployments</Link>}
      heading={<DetailHeading mark={deploymentMark(deployment)} state={state} id={id} />}
      actions={<DeploymentActions deployment={deployment} />}
    >
      {error !== null && (
        <ErrorBanner what="The deployment could not be updated" error={error} onRetry={onRetry} />
      )}
      <Verdict explanation={explanation} />
      <p className={styles.address}>
        <span className="quiet">Address</span>
        <span className={styles.url}>
          <code>{address}</code>
          <CopyButton text={address} label="Copy the address" />
        </span>
      </p>
      <DeploymentFigures deployment={deployment} />
      <WithFacts
        label="Facts about the deployment"
        facts={<DeploymentFacts deployment={deployment} />}
      >
        <Tabs<DeploymentTab>
          value={tab ?? "try"}
          onChange={(next) =>
            navigate({
              to: "/deployments/$deploymentId",
              params: { deploymentId: id },
              search: { tab: next },
              replace: true,
              resetScroll: false,
            })
          }
          tabs={[
            { id: "try", title: "Try it", content: <TryIt deployment={deployment} /> },
            {
              id: "requests",
              title: "Requests",
              content: <Requests deploymentId={id} isLive={deployment.status === "active"} />,
            },
            { id: "code", title: "Code", content: <CodeTab address={address} id={id} /> },
            {
              id: "servers",
              title: "Servers",
              count: placements.length,
              content: <Servers deployment={deployment} />,
            },
            { id: "bill", title: "Bill", content: <DeploymentBill deployment={deployment} /> },
          ]}
        />
      </WithFacts>
    </Page>
  );
}
