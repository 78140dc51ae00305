import type { Pipeline, PipelineStep } from "@forge/sdk";
import type { Explanation } from "../ui/detail";
import {
  formatDuration,
  formatPercent,
  formatUsd,
  inOneDirection,
  plural,
  uncapitalised,
} from "../ui/format";
import { isCancelling } from "./pipeline-state";

interface PipelineExplanation extends Explanation {
  /** The step that the explanation is about. */
  step?: string;
}

export function explainPipeline(pipeline: Pipeline): PipelineExplanation {
  if (isCancelling(pipeline)) {
    return {
      tone: "warn",
      why: "Someone has cancelled the pipeline.",
      next: "It ends when the jobs under way have stopped.",
    };
  }
  switch (pipeline.status) {
    case "waiting_approval":
      return waiting(pipeline);
    case "completed":
      return completed(pipeline);
    case "failed":
      return failed(pipeline);
    case "cancelled":
      return {
        tone: "neutral",
        why: "The pipeline was cancelled.",
        next: "Resume continues with the steps that did not complete.",
      };
    default:
      return running(pipeline);
  }
}

function waiting({ steps }: Pipeline): PipelineExplanation {
  const names = steps.filter(({ status }) => status === "waiting_approval").map(nameOf);
  const [first] = names;
  const others = steps.filter(({ status }) => status === "running").length;
  return {
    tone: "warn",
    why: `${listed(names)} ${names.length === 1 ? "waits" : "wait"} for an approval.`,
    next: `Approve it to go on; a rejection ends the pipeline as failed.${
      others > 0 ? ` ${plural(others, "other step runs", "other steps run")} meanwhile.` : ""
    }`,
    ...(first ? { step: first } : {}),
  };
}

function running({ steps }: Pipeline): PipelineExplanation {
  const active = steps.filter(({ status }) => status === "running");
  const [first] = active;
  if (!first) {
    return {
      tone: "neutral",
      why: "The next step is about to begin.",
      next: "No action is needed: this takes a moment.",
    };
  }
  const left = steps.filter(({ status }) => status === "pending").length;
  const after = left > 0 ? `${plural(left, "step")} left after that.` : "It is the last step.";
  if (active.length > 1) {
    return {
      tone: "neutral",
      why: `${listed(active.map(nameOf))} run at the same time.`,
      next: left > 0 ? after : "They are the last steps.",
      step: first.name,
    };
  }
  if (first.job_status === "running") {
    const share = first.progress === null ? "" : `, ${formatPercent(first.progress)} done`;
    return {
      tone: "neutral",
      why: `Step ${first.name} runs on worker ${first.worker_id}${share}.`,
      next: after,
      step: first.name,
    };
  }
  return {
    tone: "neutral",
    why: `Step ${first.name} waits for a worker.`,
    next: `Its job says why. ${after}`,
    step: first.name,
  };
}

function completed(pipeline: Pipeline): PipelineExplanation {
  const { steps, created_at, completed_at, cost_usd, run } = pipeline;
  const took = completed_at ? Date.parse(completed_at) - Date.parse(created_at) : null;
  const skipped = steps.filter(({ status }) => status !== "completed").length;
  const chosen = steps.find((step) => step.chosen)?.chosen;
  const best = chosen ? ` ${chosen.step} was the best, with ${chosen.by} ${chosen.value}.` : "";
  const without = skipped > 0 ? `, without ${plural(skipped, "optional step")}` : "";
  return {
    tone: "ok",
    why: `Completed in ${formatDuration(took)} for ${formatUsd(cost_usd)}${without}${run > 1 ? `, at run ${run}` : ""}.${best}`,
    next: "The job of each step shows its output.",
  };
}

function failed(pipeline: Pipeline): PipelineExplanation {
  const step = failedStep(pipeline);
  const about = step ? { step: step.name } : {};
  const error = sentence(step?.error ?? pipeline.error ?? "No reason was given.");
  const say = (why: string, next: string): PipelineExplanation => ({
    tone: "danger",
    why,
    next,
    ...about,
  });
  switch (pipeline.error_code) {
    case "gate_failed":
      return say(
        step?.gate ? gateSentence(step, step.gate) : error,
        "Resume with another gate, or from an earlier step.",
      );
    case "approval_rejected":
      return say(
        `${step?.approval?.by ?? "Someone"} rejected ${nameOr(step, "a step")}${
          step?.approval?.note ? `: “${inOneDirection(step.approval.note)}”` : ""
        }.`,
        "Resume asks for the approval again.",
      );
    case "budget_exhausted":
      return say(
        step ? `Step ${step.name} was not begun: ${uncapitalised(error)}` : error,
        "Resume with a larger budget; completed steps are kept.",
      );
    case "nothing_to_choose":
      return say(
        `${nameOr(step, "A step")} had no candidate to choose: ${uncapitalised(error)}`,
        "Resume with a lower gate on evaluate, or do the candidates again.",
      );
    case "step_invalid":
      return say(
        `${nameOr(step, "A step")} could not be submitted: ${uncapitalised(error)}`,
        "Submit a corrected pipeline; with reuse, completed steps do not run again.",
      );
    default:
      return say(
        `${nameOr(step, "A step")} failed: ${uncapitalised(error)}`,
        "Read its job's log. Resume runs it again and keeps completed steps.",
      );
  }
}

/**
 * The step to name as the cause of the failure: the first failed step that is not optional, or if
 * there is none, the first failed step.
 */
function failedStep({ steps }: Pipeline): PipelineStep | undefined {
  const failedSteps = steps.filter(({ status }) => status === "failed");
  return failedSteps.find(({ optional }) => !optional) ?? failedSteps[0];
}

function gateSentence({ name }: PipelineStep, gate: NonNullable<PipelineStep["gate"]>): string {
  const numbers = Object.entries(gate.values).map(
    ([path, value]) => `${path} is ${value === null ? "missing" : shownValue(value)}`,
  );
  return `The gate of ${name} did not hold: ${[...numbers, `it needs ${gate.condition}`].join(", ")}.`;
}

/** A value that a gate has checked, as text. Numbers are rounded to six digits. */
export const shownValue = (value: unknown): string =>
  typeof value === "number" ? String(Number(value.toPrecision(6))) : String(JSON.stringify(value));

const nameOf = ({ name }: PipelineStep): string => name;

const MAX_LISTED = 3;

function listed(names: readonly string[]): string {
  if (names.length === 1) return `Step ${names[0]}`;
  if (names.length > MAX_LISTED) {
    return `Steps ${names.slice(0, MAX_LISTED - 1).join(", ")} and ${names.length - MAX_LISTED + 1} others`;
  }
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** For example "Step train". If there is no step, returns the text in `unknown`. */
const nameOr = (step: PipelineStep | undefined, unknown: "A step" | "a step"): string =>
  step ? `${unknown === "A step" ? "Step" : "step"} ${step.name}` : unknown;

const sentence = (text: string): string => (/[.!?…]$/.test(text) ? text : `${text}.`);
