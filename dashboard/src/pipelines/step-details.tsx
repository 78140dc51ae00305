import type { Pipeline, PipelineStep } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { ArrowRight } from "lucide-react";
import { buttonClass } from "../ui/button";
import { formatDuration, formatPercent, plural } from "../ui/format";
import { Json } from "../ui/json";
import { KeyValue } from "../ui/key-value";
import { JobLink } from "../ui/links";
import { Money } from "../ui/money";
import { Section, Stack } from "../ui/page";
import { Duration, Time } from "../ui/time";
import { ApprovalView } from "./approval-view";
import { GateView } from "./gate-view";
import { StepStatus } from "./pipeline-state";
import styles from "./step-details.module.css";
import { StepOutput } from "./step-output";
import { StepCost } from "./steps-table";

/** Error codes that are not shown, because the gate or the approval below explains them. */
const SHOWN_BELOW = ["gate_failed", "approval_rejected"];

/** The details of one step. The page of its job has more. */
export function StepDetails({ pipeline, step }: { pipeline: Pipeline; step: PipelineStep }) {
  const submitted = pipeline.definition?.steps.find(({ name }) => name === step.name);
  return (
    <Section
      title={`Step ${step.name}`}
      actions={
        step.job_id !== null && (
          <Link
            to="/jobs/$jobId"
            params={{ jobId: step.job_id }}
            className={buttonClass("secondary", "small")}
          >
            Open its job
            <ArrowRight size={13} />
          </Link>
        )
      }
    >
      <Stack gap={12}>
        {step.error !== null && !SHOWN_BELOW.includes(step.error_code ?? "") && (
          <div className={styles.error}>
            <code>{step.error_code}</code>
            <p>{step.error}</p>
          </div>
        )}
        {step.approval && <ApprovalView step={step} approval={step.approval} />}
        {step.gate && <GateView gate={step.gate} />}
        {step.status === "skipped" && <p className="quiet">{whySkipped(step, pipeline)}</p>}
        <div className={styles.pair}>
          <Facts step={step} />
          {submitted && <Json value={submitted.payload} label="the step's payload" />}
        </div>
      </Stack>
    </Section>
  );
}

function Facts({ step }: { step: PipelineStep }) {
  const { started_at, completed_at, expected_duration_s, attempts, chosen } = step;
  return (
    <KeyValue
      entries={[
        { name: "Status", value: <StepStatus step={step} /> },
        step.status === "running" &&
          step.progress !== null && { name: "Progress", value: formatPercent(step.progress) },
        { name: "Type", value: step.job_type },
        step.job_id !== null && {
          name: step.reused ? "Earlier job" : "Job",
          value: <JobLink id={step.job_id} />,
        },
        step.job_id !== null &&
          step.status === "completed" && {
            name: "Made",
            value: <StepOutput jobId={step.job_id} />,
          },
        step.worker_id !== null && { name: "Worker", value: step.worker_id },
        attempts !== null && attempts > 1 && { name: "Attempts", value: attempts },
        { name: "Begun", value: <Time at={started_at} /> },
        started_at !== null && {
          name: completed_at === null ? "So far" : "Took",
          value: <Duration from={started_at} to={completed_at} />,
        },
        expected_duration_s != null && {
          name: "Usually takes",
          value: formatDuration(expected_duration_s * 1000),
        },
        { name: "Cost", value: <StepCost step={step} /> },
        step.estimated_cost_usd != null && {
          name: "Usually costs",
          value: <Money usd={step.estimated_cost_usd} />,
        },
        step.needs.length > 0 && { name: "Needs", value: needsOf(step) },
        step.optional && { name: "Optional", value: "The pipeline goes on if it fails." },
        chosen != null && {
          name: "Chosen",
          value: `${chosen.step}, with ${chosen.by} ${chosen.value}`,
        },
      ]}
    />
  );
}

const MAX_NEEDS = 6;

function needsOf({ needs }: PipelineStep): string {
  const shown = needs.slice(0, MAX_NEEDS).join(", ");
  const more = needs.length - MAX_NEEDS;
  return more > 0 ? `${shown} and ${plural(more, "other")}` : shown;
}

function whySkipped({ needs }: PipelineStep, { steps }: Pipeline): string {
  const missing = needs.filter(
    (need) => steps.find(({ name }) => name === need)?.status !== "completed",
  );
  return missing.length > 0
    ? `Skipped: ${missing.join(", ")} did not complete.`
    : "Skipped: something that it needs did not complete.";
}
