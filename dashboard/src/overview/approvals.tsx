import type { Pipeline } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { UserCheck } from "lucide-react";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";
import { buttonClass } from "../ui/button";
import { Notice } from "../ui/error-banner";

const SHOWN = 5;

/** Pipelines that wait for an approval. Renders nothing if there are none. */
export function Approvals() {
  const forge = useForge();
  const { data } = useQuery({
    queryKey: ["pipelines", "approvals"],
    queryFn: async () =>
      (await forge.pipelines.list({ status: "waiting_approval", limit: SHOWN }).page()).items,
    refetchInterval: POLL_MS,
  });
  return data?.map((pipeline) => (
    <Notice
      key={pipeline.pipeline_id}
      tone="warn"
      icon={<UserCheck size={15} />}
      action={
        <Link
          to="/pipelines/$pipelineId"
          params={{ pipelineId: pipeline.pipeline_id }}
          className={buttonClass("secondary", "small")}
        >
          Decide
        </Link>
      }
    >
      <strong>{pipeline.name ?? pipeline.pipeline_id}</strong> waits for an approval of{" "}
      {waitingSteps(pipeline)}.
    </Notice>
  ));
}

const waitingSteps = ({ steps }: Pipeline): string =>
  steps
    .filter(({ status }) => status === "waiting_approval")
    .map(({ name }) => name)
    .join(", ");
