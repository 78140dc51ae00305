import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useForge } from "../api/context";
import { plainJob } from "../jobs/job-data";
import { IdText } from "../ui/copy";
import { ABSENT } from "../ui/format";
import { ArtifactLink } from "../ui/links";

/** Result fields that name an artifact (docs/handlers.md). */
const OUTPUT_ID_FIELDS = ["dataset_id", "distilled_dataset_id", "checkpoint_id", "eval_id"];

/** The output of a completed step: its artifact or its deployment. */
export function StepOutput({ jobId }: { jobId: string }) {
  const forge = useForge();
  const { data: job } = useQuery({
    queryKey: ["jobs", "one", jobId],
    queryFn: async ({ signal }) => plainJob(await forge.jobs.get(jobId, { signal })),
    // The job has ended: its data does not change.
    staleTime: Number.POSITIVE_INFINITY,
  });
  const textOf = (field: string): string | undefined => {
    const value = job?.result?.[field];
    return typeof value === "string" ? value : undefined;
  };
  const deployment = textOf("deployment_id");
  if (deployment !== undefined) {
    return (
      <Link to="/deployments/$deploymentId" params={{ deploymentId: deployment }}>
        <IdText id={deployment} />
      </Link>
    );
  }
  const artifact = OUTPUT_ID_FIELDS.map(textOf).find((id) => id !== undefined);
  return artifact === undefined ? ABSENT : <ArtifactLink id={artifact} />;
}
