import type { PipelineEstimate as Estimate } from "@forge/sdk";
import { describeError } from "../../api/errors";
import { type Estimated, EstimateFrame, EstimateTotal } from "../../submit/estimate-panel";
import { formatDuration, formatUsd } from "../../ui/format";
import styles from "./pipeline-estimate.module.css";

/** The expected cost of the pipeline, step by step, before it is submitted. */
export const PipelineEstimate = (props: Estimated<Estimate>) => (
  <EstimateFrame {...props} explain={(error) => describeError(error).message}>
    {(estimate) => <Numbers estimate={estimate} />}
  </EstimateFrame>
);

function Numbers({ estimate }: { estimate: Estimate }) {
  const { steps, duration_s: seconds, rate_card, rate_card_version } = estimate;
  return (
    <>
      <EstimateTotal amounts={estimate} />
      {seconds !== null && (
        <p className="note">
          About {formatDuration(seconds * 1000)}, without waiting for workers and approvals.
        </p>
      )}
      <table className={styles.steps} aria-label="Estimated cost of each step">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">By</th>
            <th scope="col">Range</th>
            <th scope="col">Expected</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <tr key={step.name}>
              <th scope="row">{step.name}</th>
              <td>{BASES[step.basis]}</td>
              <td>{rangeOf(step)}</td>
              <td>{formatUsd(step.expected_usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="note">
        Rate card {rate_card}, version {rate_card_version}. Each step succeeds at its first attempt,
        and nothing is reused.
      </p>
    </>
  );
}

const BASES: Record<Estimate["steps"][number]["basis"], string> = {
  payload: "the form",
  history: "your jobs",
  prior: "rule of thumb",
};

const rangeOf = ({ low_usd, high_usd }: { low_usd: number; high_usd: number }): string =>
  low_usd === high_usd ? "" : `${formatUsd(low_usd)} – ${formatUsd(high_usd)}`;
