import type { BillingRecord } from "@forge/sdk";
import { IdText } from "../ui/copy";
import { formatUsd } from "../ui/format";
import type { Column } from "../ui/table";
import { Tag } from "../ui/tag";
import { ageColumn } from "../ui/time";
import styles from "./record-columns.module.css";

/**
 * The columns of the table of billing records.
 * @param open is called to show the record of the job with this id.
 */
export const recordColumns = (open: (jobId: string) => void): readonly Column<BillingRecord>[] => [
  { id: "type", title: "Type", width: "88px", cell: ({ job_type }) => job_type },
  {
    id: "job",
    title: "Job",
    cell: ({ job_id }) => (
      <button type="button" className={styles.open} onClick={() => open(job_id)}>
        <IdText id={job_id} />
      </button>
    ),
  },
  {
    id: "formula",
    title: "Formula",
    hideBelow: "laptop",
    cell: ({ formula }) => (
      <code className="quiet" title={formula}>
        {formula}
      </code>
    ),
  },
  {
    id: "state",
    title: "State",
    width: "172px",
    hideBelow: "tablet",
    cell: (record) => <State record={record} />,
  },
  ageColumn("Written", { hideBelow: "phone" }),
  {
    id: "usd",
    title: "Cost",
    width: "104px",
    align: "right",
    cell: ({ total_cost_usd }) => formatUsd(total_cost_usd, 6),
  },
];

function State({ record: { state, flags } }: { record: BillingRecord }) {
  if (state === "accruing") return <Tag>accruing</Tag>;
  if (flags.length > 0) {
    return (
      <span title={flags.map(words).join("; ")}>
        <Tag>{flags.length === 1 ? words(flags[0]) : `${flags.length} flags`}</Tag>
      </span>
    );
  }
  return <span className="quiet">final</span>;
}

const words = (flag = ""): string => flag.replaceAll("_", " ");
