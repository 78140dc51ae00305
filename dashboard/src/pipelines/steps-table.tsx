import type { PipelineStep } from "@forge/sdk";
import { DEPLOYMENT_TYPE } from "../jobs/declared-types";
import { cx } from "../ui/cx";
import { ABSENT, formatPercent } from "../ui/format";
import { Money } from "../ui/money";
import { Duration } from "../ui/time";
import { StepStatus } from "./pipeline-state";
import type { PipelineViewProps } from "./pipeline-view";
import styles from "./steps-table.module.css";

/** One row for each step with its cost, and the pipeline's total. */
export function StepsTable({ pipeline, chosen, onChoose }: PipelineViewProps) {
  const { steps, cost_usd, estimated_cost_usd } = pipeline;
  const ofThisRun = steps.reduce((sum, step) => sum + (step.cost_usd ?? 0), 0);
  // Rounds off floating-point error.
  const earlier = Math.round((cost_usd - ofThisRun) * 1e6) / 1e6;
  return (
    <table className={styles.table} aria-label="Steps">
      <thead>
        <tr>
          <th scope="col">Step</th>
          <th scope="col">Status</th>
          <th scope="col" className={styles.wide}>
            Worker
          </th>
          <th scope="col" className={cx(styles.number, styles.wide)}>
            Took
          </th>
          <th scope="col" className={cx(styles.number, styles.wide)}>
            Usual cost
          </th>
          <th scope="col" className={styles.number}>
            Cost
          </th>
        </tr>
      </thead>
      <tbody>
        {steps.map((step) => (
          <tr
            key={step.name}
            className={step.name === chosen ? styles.chosen : undefined}
            onClick={() => onChoose(step.name)}
          >
            <td>
              <button
                type="button"
                className={styles.name}
                aria-pressed={step.name === chosen}
                onClick={() => onChoose(step.name)}
              >
                {step.name}
              </button>
            </td>
            <td>
              <StepStatus step={step} />
              {step.status === "running" && step.progress !== null && (
                <span className="quiet"> {formatPercent(step.progress)}</span>
              )}
            </td>
            <td className={cx(styles.wide, "quiet")}>{step.worker_id ?? ABSENT}</td>
            <td className={cx(styles.number, styles.wide)}>
              <Duration from={step.started_at} to={step.completed_at} />
            </td>
            <td className={cx(styles.number, styles.wide, "quiet")}>
              <Money usd={step.estimated_cost_usd} />
            </td>
            <td className={styles.number}>
              <StepCost step={step} />
            </td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        {earlier > 0 && <Total name="Jobs of earlier runs" usd={earlier} />}
        <Total name="In all" usd={cost_usd} />
        {estimated_cost_usd != null && estimated_cost_usd !== cost_usd && (
          <Total name="Expected in all" usd={estimated_cost_usd} />
        )}
      </tfoot>
    </table>
  );
}

export function StepCost({ step }: { step: PipelineStep }) {
  if (step.reused) return <span title="An earlier artifact was reused">$0.00</span>;
  if (step.cost_usd === null && step.job_type === DEPLOYMENT_TYPE && step.status === "completed") {
    return <span title="A deployment has a bill of its own">own bill</span>;
  }
  return <Money usd={step.cost_usd} />;
}

function Total({ name, usd }: { name: string; usd: number }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td />
      <td className={styles.wide} />
      <td className={styles.wide} />
      <td className={styles.wide} />
      <td className={styles.number}>
        <Money usd={usd} />
      </td>
    </tr>
  );
}
