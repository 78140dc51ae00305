import type { DeploymentDetail } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { IdText } from "../ui/copy";
import { KeyValue } from "../ui/key-value";
import { Time } from "../ui/time";
import { DeploymentState } from "./deployment-state";

export function DeploymentFacts({ deployment }: { deployment: DeploymentDetail }) {
  const { deployment_id, checkpoint_id, job_id, scaling, created_at, stopped_at } = deployment;
  const { min_replicas: least, max_replicas: most } = scaling;
  return (
    <KeyValue
      entries={[
        { name: "Status", value: <DeploymentState deployment={deployment} /> },
        checkpoint_id !== null && {
          name: "Checkpoint",
          value: (
            <Link to="/artifacts/$artifactId" params={{ artifactId: checkpoint_id }}>
              <IdText id={checkpoint_id} />
            </Link>
          ),
        },
        {
          name: "Artifact",
          value: (
            <Link to="/artifacts/$artifactId" params={{ artifactId: deployment_id }}>
              Manifest and lineage
            </Link>
          ),
        },
        {
          name: "Deployed by",
          value: (
            <Link to="/jobs/$jobId" params={{ jobId: job_id }}>
              <IdText id={job_id} />
            </Link>
          ),
        },
        { name: "Deployed", value: <Time at={created_at} /> },
        { name: "Servers", value: least === most ? least : `${least} to ${most}` },
        stopped_at !== null && { name: "Stopped", value: <Time at={stopped_at} /> },
        deployment.stopped_by !== null && { name: "Stopped by", value: deployment.stopped_by },
      ]}
    />
  );
}
