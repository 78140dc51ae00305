import type { Rates } from "@forge/sdk";
import { formatUsd } from "../ui/format";
import { Section } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";
import styles from "./plain-table.module.css";

type Price = readonly [name: string, usd: number];

/** The prices for a job submitted now. */
export function RatesSection({ rates }: { rates: Rates | undefined }) {
  return (
    <Section title="Rate card">
      {rates ? <Card rates={rates} /> : <SkeletonLines count={6} />}
    </Section>
  );
}

function Card({ rates }: { rates: Rates }) {
  const work = rates.basis === "work";
  return (
    <>
      <p className="quiet">
        <strong>{rates.rate_card}</strong>, version {rates.version}:{" "}
        {work ? "by what a job makes." : "by what a job uses."} A job keeps the card of its
        submission.
      </p>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">For</th>
            <th scope="col" className={styles.right}>
              Price
            </th>
          </tr>
        </thead>
        <tbody>
          {pricesOf(rates).map(([name, usd]) => (
            <tr key={name}>
              <td>{name}</td>
              <td className={styles.right}>{formatUsd(usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function pricesOf(rates: Rates): Price[] {
  const { default: anyGpu, ...named } = rates.gpu_hour;
  const gpus = Object.entries(named).map(
    ([gpu, usd]) => [`A GPU hour on ${gpu.toUpperCase()}`, usd] as const,
  );
  const others: Price[] = [
    [gpus.length > 0 ? "A GPU hour on any other GPU" : "A GPU hour", anyGpu ?? 0],
    ["1,000,000 generated tokens", rates.generation_per_1m_tokens],
    ["1,000,000 distilled tokens", rates.distill_per_1m_tokens],
    ["1,000,000 input tokens", rates.input_per_1m_tokens],
    ["1,000,000 output tokens", rates.output_per_1m_tokens],
    ["1,000 audited rows", rates.audit_per_1k_rows],
    ["100 evaluated samples", rates.eval_per_100_samples],
    ["A deployment for 30 days", rates.deploy_per_month],
    ["A GB stored for a month", rates.storage_per_gb_month],
  ];
  return [...gpus, ...others].filter(([, usd]) => usd > 0);
}
