import type { BillingSummary } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { capitalised, formatPercent, formatUsd } from "../ui/format";
import { Section } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";
import { Tabs } from "../ui/tabs";
import styles from "./breakdown-section.module.css";
import { BREAKDOWNS, type Breakdown } from "./search";

interface Props {
  summary: BillingSummary | undefined;
  by: Breakdown;
  onChange: (by: Breakdown) => void;
}

const VIEWS: Record<Breakdown, { title: string; none: string; note?: string }> = {
  type: { title: "By type", none: "Nothing was billed in this month." },
  tag: {
    title: "By tag",
    none: "No job with a tag was billed in this month.",
    note: "A job counts under each of its tags, so tags do not add up to the total.",
  },
  pipeline: { title: "By pipeline", none: "No pipeline was billed in this month." },
};

/** The month's cost by type, tag or pipeline. */
export function BreakdownSection({ summary, by, onChange }: Props) {
  return (
    <Section title="Where it went">
      <Tabs<Breakdown>
        value={by}
        onChange={onChange}
        tabs={BREAKDOWNS.map((id) => ({
          id,
          title: VIEWS[id].title,
          content: summary ? <Costs summary={summary} by={id} /> : <SkeletonLines count={4} />,
        }))}
      />
    </Section>
  );
}

const costsOf = (summary: BillingSummary, by: Breakdown): Record<string, number> =>
  ({ type: summary.by_job_type, tag: summary.by_tag, pipeline: summary.by_pipeline })[by];

function Costs({ summary, by }: { summary: BillingSummary; by: Breakdown }) {
  const costs = Object.entries(costsOf(summary, by))
    .filter(([, usd]) => usd > 0)
    .sort(([, a], [, b]) => b - a);
  const { title, none, note } = VIEWS[by];
  if (costs.length === 0) return <p className="quiet">{none}</p>;
  const largest = costs[0]?.[1] ?? 1;
  const total = summary.total_cost_usd;
  return (
    <>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">{capitalised(title.slice(3))}</th>
            <th scope="col" className={styles.track}>
              <span className="visually-hidden">Share as a bar</span>
            </th>
            <th scope="col" className={styles.right}>
              Share
            </th>
            <th scope="col" className={styles.right}>
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {costs.map(([name, usd]) => (
            <tr key={name}>
              <th scope="row" className={styles.name} title={name}>
                <JobsOf by={by} name={name} />
              </th>
              <td className={styles.track}>
                <span className={styles.fill} style={{ width: `${(usd / largest) * 100}%` }} />
              </td>
              <td className={styles.right}>{formatPercent(total > 0 ? usd / total : 0)}</td>
              <td className={styles.right} title={formatUsd(usd, 6)}>
                {formatUsd(usd)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {note && <p className={styles.note}>{note}</p>}
    </>
  );
}

/** A link to the list of the jobs that have this type, tag or pipeline. */
function JobsOf({ by, name }: { by: Breakdown; name: string }) {
  const filter = { type: "job_type", tag: "tag", pipeline: "pipeline_id" }[by];
  const value = by === "pipeline" ? name : [name];
  return (
    <Link to="/jobs" search={{ [filter]: value }}>
      {name}
    </Link>
  );
}
