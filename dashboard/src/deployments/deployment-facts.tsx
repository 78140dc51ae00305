import type { DeploymentDetail } from "@forge/sdk";
import { KeyValue } from "../ui/key-value";
import { ArtifactLink, JobLink } from "../ui/links";
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
          value: <ArtifactLink id={checkpoint_id} />,
        },
        {
          name: "Artifact",
          value: <ArtifactLink id={deployment_id}>Manifest and lineage</ArtifactLink>,
        },
        { name: "Deployed by", value: <JobLink id={job_id} /> },
        { name: "Deployed", value: <Time at={created_at} /> },
        { name: "Servers", value: least === most ? least : `${least} to ${most}` },
        stopped_at !== null && { name: "Stopped", value: <Time at={stopped_at} /> },
        deployment.stopped_by !== null && { name: "Stopped by", value: deployment.stopped_by },
      ]}
    />
  );
}
