import type { DeploymentDetail } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { isNotFound } from "../api/errors";
import { POLL_MS } from "../api/queries";
import { Bill } from "../jobs/job-bill";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { SkeletonLines } from "../ui/skeleton";

/** The billing record of a deployment is the record of its deploy job. */
export function DeploymentBill({ deployment }: { deployment: DeploymentDetail }) {
  const { job_id: jobId, status } = deployment;
  const forge = useForge();
  const { data, error, refetch } = useQuery({
    queryKey: ["billing", "record", jobId, status],
    queryFn: ({ signal }) => forge.billing.record(jobId, { signal }),
    refetchInterval: status === "active" ? POLL_MS : false,
  });
  if (data) return <Bill record={data} />;
  if (isNotFound(error)) return <Empty title="Nothing is billed for this deployment." />;
  if (error) {
    return <ErrorBanner what="The bill could not be loaded" error={error} onRetry={refetch} />;
  }
  return <SkeletonLines count={4} />;
}
