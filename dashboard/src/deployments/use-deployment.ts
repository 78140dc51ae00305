import type { DeploymentDetail } from "@forge/sdk";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";
import { toast } from "../ui/toasts";

const keyOf = (deploymentId: string) => ["deployments", "one", deploymentId] as const;

export function useDeployment(deploymentId: string) {
  const forge = useForge();
  return useQuery({
    queryKey: keyOf(deploymentId),
    queryFn: ({ signal }) => forge.deployments.get(deploymentId, { signal }),
    refetchInterval: ({ state }) => (state.data?.status === "stopped" ? false : POLL_MS),
  });
}

/** A mutation that changes a deployment. The page shows the response at once. */
export function useDeploymentChange<Values>(
  deploymentId: string,
  call: (values: Values) => Promise<DeploymentDetail>,
  done: (deployment: DeploymentDetail) => string,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: call,
    onSuccess: (deployment) => {
      queries.setQueryData(keyOf(deploymentId), deployment);
      toast.ok(done(deployment));
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["deployments"] }),
  });
}
