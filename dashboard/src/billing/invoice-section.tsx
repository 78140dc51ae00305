import type { BillingSummary } from "@forge/sdk";
import { formatUsd } from "../ui/format";
import { Section } from "../ui/page";
import styles from "./plain-table.module.css";

/** The lines of a month's invoice. For the current month, the invoice up to now. */
export function InvoiceSection({ summary, isNow }: { summary: BillingSummary; isNow: boolean }) {
  const { lines, total_usd } = summary.estimated_invoice;
  const { gb_months, amount_usd } = summary.storage;
  const hasStorageLine = lines.some(({ kind }) => kind === "storage");
  return (
    <Section title={isNow ? "Invoice so far" : "Invoice"}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Line</th>
            <th scope="col" className={styles.right}>
              Amount
            </th>
          </tr>
        </thead>
        <tbody>
          {lines.map(({ kind, job_type, description, amount_usd: usd }) => (
            <tr key={`${kind} ${job_type} ${description}`}>
              <td>{description}</td>
              <td className={styles.right} title={formatUsd(usd, 6)}>
                {formatUsd(usd)}
              </td>
            </tr>
          ))}
          {!hasStorageLine && (
            <tr>
              <td>Storage: {gb_months.toFixed(3)} GB-months</td>
              <td className={styles.right}>{formatUsd(amount_usd)}</td>
            </tr>
          )}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th>
            <td className={styles.right} title={formatUsd(total_usd, 6)}>
              {formatUsd(total_usd)}
            </td>
          </tr>
        </tfoot>
      </table>
    </Section>
  );
}
