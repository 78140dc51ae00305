import type { BillingSummary } from "@forge/sdk";
import { useState } from "react";
import { Button } from "../ui/button";
import { cx } from "../ui/cx";
import { formatUsd } from "../ui/format";
import { Section } from "../ui/page";
import { Status } from "../ui/status-mark";
import { BudgetDialog } from "./budget-dialog";
import styles from "./budget-panel.module.css";

type Budget = NonNullable<BillingSummary["budget"]>;

/** How much of the month's cap is used. A budget always applies to the current month. */
export function BudgetPanel({ budget }: { budget: Budget | null }) {
  const [isEditing, setEditing] = useState(false);
  return (
    <Section
      title="Budget"
      actions={
        <Button size="small" onClick={() => setEditing(true)}>
          {budget?.cap_usd == null ? "Set a cap" : "Change"}
        </Button>
      }
    >
      {budget?.cap_usd == null ? (
        <p className="quiet">
          No cap. With one, Forge refuses submissions that would pass it, and warns before.
        </p>
      ) : (
        <Used budget={budget} cap={budget.cap_usd} />
      )}
      <BudgetDialog open={isEditing} onClose={() => setEditing(false)} budget={budget} />
    </Section>
  );
}

const STATES: Record<string, { mark: "completed" | "running" | "failed"; text: string }> = {
  ok: { mark: "completed", text: "Within the budget" },
  warning: { mark: "running", text: "Past the warning: submissions go through, and warn" },
  exhausted: { mark: "failed", text: "Used up: submissions are refused" },
};

function Used({ budget, cap }: { budget: Budget; cap: number }) {
  const { spent_usd, committed_usd, remaining_usd, warning_usd } = budget;
  const state = STATES[budget.state];
  const share = (usd: number): string =>
    `${cap > 0 ? Math.min(100, Math.max(0, (usd / cap) * 100)) : 100}%`;
  return (
    <div className={styles.used}>
      <div
        className={styles.track}
        role="meter"
        aria-label="Share of the cap that is spent or committed"
        aria-valuemin={0}
        aria-valuemax={cap}
        aria-valuenow={Math.min(cap, spent_usd + committed_usd)}
        aria-valuetext={`${formatUsd(spent_usd)} spent and ${formatUsd(committed_usd)} committed of ${formatUsd(cap)}`}
      >
        <span className={styles.spent} style={{ width: share(spent_usd) }} />
        <span
          className={styles.committed}
          style={{ left: share(spent_usd), width: share(Math.min(committed_usd, cap - spent_usd)) }}
        />
        {warning_usd !== null && warning_usd < cap && (
          <span className={styles.warning} style={{ left: share(warning_usd) }} />
        )}
      </div>
      <dl className={styles.numbers}>
        <Entry name="Spent" mark={styles.spent} usd={spent_usd} />
        <Entry name="Committed" mark={styles.committed} usd={committed_usd} />
        <Entry name="Left" usd={remaining_usd} />
        <Entry name="Cap a month" usd={cap} />
        {warning_usd === null ? (
          <div>
            <dt>Warns from</dt>
            <dd>never</dd>
          </div>
        ) : (
          <Entry name="Warns from" mark={styles.warning} usd={warning_usd} />
        )}
      </dl>
      {state && <Status mark={state.mark} text={state.text} />}
    </div>
  );
}

interface EntryProps {
  name: string;
  mark?: string | undefined;
  usd: number | null;
}

const Entry = ({ name, mark, usd }: EntryProps) => (
  <div>
    <dt>
      {mark && <span className={cx("swatch", mark)} aria-hidden="true" />}
      {name}
    </dt>
    <dd>{formatUsd(usd)}</dd>
  </div>
);
