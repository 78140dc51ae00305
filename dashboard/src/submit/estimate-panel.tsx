import type { Estimate } from "@forge/sdk";
import type { ReactNode } from "react";
import { describeError } from "../api/errors";
import { cx } from "../ui/cx";
import { formatUsd, plural } from "../ui/format";
import { Money } from "../ui/money";
import { Section } from "../ui/page";
import styles from "./estimate-panel.module.css";

export interface Estimated<T> {
  estimate: T | undefined;
  error: unknown;
  /** A newer estimate is loading. */
  isOld: boolean;
}

/** Shows the expected cost of the job, and how it was computed. */
export const EstimatePanel = (props: Estimated<Estimate>) => (
  <EstimateFrame {...props} explain={reasonOf}>
    {(estimate) => <Numbers estimate={estimate} />}
  </EstimateFrame>
);

interface FrameProps<T> extends Estimated<T> {
  explain: (error: unknown) => string;
  children: (estimate: T) => ReactNode;
}

export function EstimateFrame<T>({ estimate, error, isOld, explain, children }: FrameProps<T>) {
  return (
    <Section title="Estimated cost">
      <div className={cx(styles.panel, isOld && styles.old)} aria-live="polite" aria-busy={isOld}>
        {estimate ? (
          children(estimate)
        ) : (
          <p className="note">
            {error
              ? `There is no estimate. ${explain(error)}`
              : "Appears when the required fields are filled."}
          </p>
        )}
      </div>
    </Section>
  );
}

type Amounts = Pick<Estimate, "expected_usd" | "low_usd" | "high_usd">;

export const EstimateTotal = ({
  amounts: { expected_usd, low_usd, high_usd },
}: {
  amounts: Amounts;
}) => (
  <p className={styles.total}>
    <Money usd={expected_usd} />
    {low_usd !== high_usd && (
      <span className={styles.range}>
        {formatUsd(low_usd)} to {formatUsd(high_usd)}
      </span>
    )}
  </p>
);

function Numbers({ estimate }: { estimate: Estimate }) {
  const { formula, rate_card, rate_card_version } = estimate;
  return (
    <>
      <EstimateTotal amounts={estimate} />
      <p className="note">{basisOf(estimate)}</p>
      <p className={styles.formula}>
        <code>{formula}</code>
      </p>
      <p className="note">
        Rate card {rate_card}, version {rate_card_version}. For one attempt that succeeds.
      </p>
    </>
  );
}

/** Says why there is no estimate. If a field is invalid, the field itself shows the details. */
function reasonOf(error: unknown): string {
  const { param, message } = describeError(error);
  return param ? "Forge would refuse one of the fields." : message;
}

function basisOf({ basis, samples }: Estimate): string {
  switch (basis) {
    case "payload":
      return "Computed from what you submit.";
    case "history":
      return `From your last ${plural(samples, "job")} of this type, at this one's size: one in ten cost less than the low end, one in ten more than the high end.`;
    default:
      return "A rule of thumb: you have no finished job of this type yet.";
  }
}
