import type { PipelineStep } from "@forge/sdk";
import { formatNumber } from "../ui/format";
import { StatusMark } from "../ui/status-mark";
import { stepMark, stepStateName } from "./pipeline-state";
import styles from "./step-marks.module.css";

const MAX_MARKS = 8;
const hasEnded = ({ status }: PipelineStep): boolean =>
  status !== "pending" && status !== "running" && status !== "waiting_approval";

/**
 * Shows one mark for each step, in order. If there are more than MAX_MARKS steps, shows how many
 * steps have ended instead.
 */
export function StepMarks({ steps }: { steps: readonly PipelineStep[] }) {
  if (steps.length > MAX_MARKS) {
    const ended = steps.filter(hasEnded).length;
    return (
      <span className={styles.count}>
        {formatNumber(ended)} of {formatNumber(steps.length)}
      </span>
    );
  }
  return (
    <span className={styles.marks}>
      {steps.map((step) => {
        const label = `${step.name}: ${stepStateName(step)}`;
        return (
          <span key={step.name} title={label}>
            <StatusMark mark={stepMark(step)} label={label} />
          </span>
        );
      })}
    </span>
  );
}
