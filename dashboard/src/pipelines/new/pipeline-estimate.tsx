import type { PipelineEstimate as Estimate } from "@forge/sdk";
import { describeError } from "../../api/errors";
import { EstimateFrame, EstimateTotal } from "../../submit/estimate-panel";
import panel from "../../submit/estimate-panel.module.css";
import { formatDuration, formatUsd } from "../../ui/format";
import styles from "./pipeline-estimate.module.css";

interface Props {
  estimate: Estimate | undefined;
  error: unknown;
  isOld: boolean;
}

/** The expected cost of the pipeline, step by step, before it is submitted. */
export function PipelineEstimate({ estimate, error, isOld }: Props) {
  return (
    <EstimateFrame isOld={isOld}>
      {error && !estimate ? (
        <p className={panel.note}>There is no estimate. {describeError(error).message}</p>
      ) : estimate ? (
        <Numbers estimate={estimate} />
      ) : (
        <p className={panel.note}>Appears when the required fields are filled.</p>
      )}
    </EstimateFrame>
  );
}

function Numbers({ estimate }: { estimate: Estimate }) {
  const { steps, duration_s: seconds, rate_card, rate_card_version } = estimate;
  return (
    <>
      <EstimateTotal amounts={estimate} />
      {seconds !== null && (
        <p className={panel.note}>
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
      <p className={panel.note}>
        Rate card {rate_card}, version {rate_card_version}. Each step succeeds at its first attempt,
        and nothing is reused.
      </p>
    </>
  );
}

/** The basis of an estimate. */
const BASES: Record<Estimate["steps"][number]["basis"], string> = {
  payload: "the form",
  history: "your jobs",
  prior: "rule of thumb",
};

const rangeOf = ({ low_usd, high_usd }: { low_usd: number; high_usd: number }): string =>
  low_usd === high_usd ? "" : `${formatUsd(low_usd)} – ${formatUsd(high_usd)}`;
