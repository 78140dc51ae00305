import type { Estimate } from "@forge/sdk";
import { describeError } from "../api/errors";
import { cx } from "../ui/cx";
import { formatUsd, plural } from "../ui/format";
import { Money } from "../ui/money";
import { Section } from "../ui/page";
import styles from "./estimate-panel.module.css";

interface Props {
  estimate: Estimate | undefined;
  error: unknown;
  /** Another one is on its way. */
  isOld: boolean;
}

/** What the job is expected to cost, and how that was computed. */
export function EstimatePanel({ estimate, error, isOld }: Props) {
  return (
    <Section title="Estimated cost">
      <div className={cx(styles.panel, isOld && styles.old)} aria-live="polite" aria-busy={isOld}>
        {error && !estimate ? (
          <p className={styles.note}>There is no estimate. {reasonOf(error)}</p>
        ) : estimate ? (
          <Numbers estimate={estimate} />
        ) : (
          <p className={styles.note}>Appears when the required fields are filled.</p>
        )}
      </div>
    </Section>
  );
}

function Numbers({ estimate }: { estimate: Estimate }) {
  const { expected_usd, low_usd, high_usd, formula, rate_card, rate_card_version } = estimate;
  const hasRange = low_usd !== high_usd;
  return (
    <>
      <p className={styles.total}>
        <Money usd={expected_usd} />
        {hasRange && (
          <span className={styles.range}>
            {formatUsd(low_usd)} to {formatUsd(high_usd)}
          </span>
        )}
      </p>
      <p className={styles.note}>{basisOf(estimate)}</p>
      <p className={styles.formula}>
        <code>{formula}</code>
      </p>
      <p className={styles.note}>
        Rate card {rate_card}, version {rate_card_version}. For one attempt that succeeds.
      </p>
    </>
  );
}

/** What is wrong with a field is said there. */
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
