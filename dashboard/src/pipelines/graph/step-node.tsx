import type { PipelineStep } from "@forge/sdk";
import type { Node, NodeProps } from "@xyflow/react";
import { Lock, ShieldCheck } from "lucide-react";
import { memo } from "react";
import { cx } from "../../ui/cx";
import { formatPercent, formatUsd } from "../../ui/format";
import { WithHandles } from "../../ui/graph/flow";
import { StatusMark } from "../../ui/status-mark";
import { Duration } from "../../ui/time";
import { stepMark, stepStateName } from "../pipeline-state";
import styles from "./step-node.module.css";

interface StepNodeData extends Record<string, unknown> {
  step: PipelineStep;
  isChosen: boolean;
  isCritical: boolean;
  direction: "LR" | "TB";
  onChoose: (step: string) => void;
}
export type StepNodeType = Node<StepNodeData, "step">;

export const StepNode = memo(({ data }: NodeProps<StepNodeType>) => {
  const { step, isChosen, isCritical, direction, onChoose } = data;
  return (
    <WithHandles direction={direction}>
      <button
        type="button"
        className={cx(
          styles.node,
          "nopan",
          styles[step.status],
          isChosen && styles.chosen,
          isCritical && styles.critical,
        )}
        aria-pressed={isChosen}
        onClick={() => onChoose(step.name)}
      >
        <span className={styles.head}>
          <StatusMark mark={stepMark(step)} />
          <span className={styles.name} title={step.name}>
            {step.name}
          </span>
          {step.approval && <Lock size={12} aria-label="needs an approval" />}
          {step.gate && <ShieldCheck size={13} aria-label="has a gate" />}
        </span>
        <span className={styles.foot}>
          {/* The mark already shows `completed`, so hide the text to make room for the numbers. */}
          <span className={step.status === "completed" ? "visually-hidden" : styles.state}>
            {aboutOf(step)}
          </span>
          <span className={styles.numbers}>
            {step.started_at !== null && <Duration from={step.started_at} to={step.completed_at} />}
            {step.cost_usd !== null && step.cost_usd > 0 && ` · ${formatUsd(step.cost_usd)}`}
          </span>
        </span>
        {isCritical && <span className="visually-hidden">on the critical path</span>}
      </button>
    </WithHandles>
  );
});

function aboutOf(step: PipelineStep): string {
  const state = stepStateName(step);
  return step.status === "running" && step.progress !== null
    ? `${state} ${formatPercent(step.progress)}`
    : state;
}
