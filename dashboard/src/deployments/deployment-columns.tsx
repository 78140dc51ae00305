import type { Deployment } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { IdText } from "../ui/copy";
import { cx } from "../ui/cx";
import { ABSENT } from "../ui/format";
import { Money } from "../ui/money";
import type { Column } from "../ui/table";
import { ageColumn } from "../ui/time";
import styles from "./deployment-columns.module.css";
import { DeploymentState, Hourly, healthyServers, hourlyUsd } from "./deployment-state";

export const DEPLOYMENT_COLUMNS: readonly Column<Deployment>[] = [
  {
    id: "status",
    title: "Status",
    width: "118px",
    hideBelow: "phone",
    cell: (deployment) => <DeploymentState deployment={deployment} />,
  },
  {
    id: "id",
    title: "Deployment",
    cell: (deployment) => (
      <Link
        to="/deployments/$deploymentId"
        params={{ deploymentId: deployment.deployment_id }}
        className={styles.id}
      >
        <span className={cx("only-phone", styles.state)}>
          <DeploymentState deployment={deployment} />
        </span>
        <IdText id={deployment.deployment_id} />
      </Link>
    ),
  },
  {
    id: "model",
    title: "Model",
    hideBelow: "tablet",
    cell: ({ checkpoint_id }) => (checkpoint_id ? <IdText id={checkpoint_id} /> : ABSENT),
  },
  {
    id: "workers",
    title: "Servers",
    width: "200px",
    hideBelow: "laptop",
    cell: (deployment) => <Servers deployment={deployment} />,
  },
  {
    id: "hourly",
    title: "USD per hour",
    width: "104px",
    align: "right",
    hideBelow: "tablet",
    cell: (deployment) => <Hourly usd={hourlyUsd(deployment, Date.now())} />,
  },
  {
    id: "cost",
    title: "So far, USD",
    width: "92px",
    align: "right",
    cell: ({ cost_usd }) => <Money usd={cost_usd} />,
  },
  ageColumn("Deployed", { width: "100px", hideBelow: "phone" }),
];

function Servers({ deployment }: { deployment: Deployment }) {
  if (deployment.trouble !== null) {
    return <span title={deployment.trouble}>{deployment.trouble}</span>;
  }
  const workers = deployment.replicas
    .filter(({ state }) => state === "serving")
    .map(({ worker_id }) => worker_id ?? ABSENT);
  if (workers.length === 0) return <span className="quiet">none</span>;
  const text = workers.join(", ");
  return (
    <span title={text}>
      {healthyServers(deployment)} on {text}
    </span>
  );
}
