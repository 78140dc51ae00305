import type { Pipeline } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { formatUsd } from "../ui/format";
import { KeyValue } from "../ui/key-value";
import { Tags } from "../ui/tag";
import { Time } from "../ui/time";
import { PipelineStatus } from "./pipeline-state";

export function PipelineFacts({ pipeline }: { pipeline: Pipeline }) {
  const { pipeline_id, template, tags, budget_usd, completed_at, run } = pipeline;
  return (
    <KeyValue
      entries={[
        { name: "Status", value: <PipelineStatus pipeline={pipeline} /> },
        template !== null && { name: "Template", value: template },
        { name: "Submitted", value: <Time at={pipeline.created_at} /> },
        completed_at !== null && { name: "Ended", value: <Time at={completed_at} /> },
        { name: "By key", value: pipeline.created_by },
        run > 1 && { name: "Run", value: run },
        { name: "Budget", value: budget_usd === null ? "none" : formatUsd(budget_usd) },
        { name: "Reuse", value: pipeline.reuse ? "earlier artifacts, where they fit" : "off" },
        tags.length > 0 && { name: "Tags", value: <Tags tags={tags} wrap /> },
        {
          name: "Jobs",
          value: (
            <Link to="/jobs" search={{ pipeline_id }}>
              All jobs of all runs
            </Link>
          ),
        },
      ]}
    />
  );
}
