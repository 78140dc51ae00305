import type { BillingRecord } from "@forge/sdk";
import { JOB_TYPES } from "../jobs/declared-types";
import { FIRST_JOB } from "../jobs/job-data";
import { Button } from "../ui/button";
import { ChoiceFilter } from "../ui/choice-filter";
import { Empty } from "../ui/empty";
import { Select } from "../ui/field";
import { ListTable } from "../ui/list-table";
import { Section } from "../ui/page";
import { recordColumns } from "./record-columns";
import { RecordDialog } from "./record-dialog";
import styles from "./records-section.module.css";
import { type BillingSearch, type RecordSort, SORTS } from "./search";
import { useRecords } from "./use-billing";

interface Props {
  period: string;
  isNow: boolean;
  search: BillingSearch;
  onChange: (change: Partial<BillingSearch>) => void;
}

const SORT_NAMES: Record<RecordSort, string> = { time: "Newest first", cost: "Dearest first" };

/** The billing records of the month. Selecting a record shows its formula. */
export function RecordsSection({ period, isNow, search, onChange }: Props) {
  const list = useRecords(period, isNow, search);
  const types = search.job_type ?? [];
  const open = (job: string): void => onChange({ record: job });
  return (
    <Section
      title="Records"
      actions={
        <div className={styles.tools}>
          <ChoiceFilter
            title="Type"
            chosen={types}
            options={JOB_TYPES}
            onChange={(job_type) => onChange({ job_type })}
          />
          <Select
            aria-label="Order"
            className={styles.sort}
            value={search.sort ?? "time"}
            onChange={({ target }) => onChange({ sort: target.value as RecordSort })}
          >
            {SORTS.map((sort) => (
              <option key={sort} value={sort}>
                {SORT_NAMES[sort]}
              </option>
            ))}
          </Select>
        </div>
      }
    >
      <ListTable<BillingRecord>
        label="Billing records"
        columns={recordColumns(open)}
        list={list}
        more="more records"
        failed="The records could not be loaded"
        rowId={({ job_id }) => job_id}
        onOpen={({ job_id }) => open(job_id)}
        empty={
          types.length > 0 ? (
            <Empty
              title="No record of this month is of these types."
              action={<Button onClick={() => onChange({ job_type: [] })}>Show all types</Button>}
            />
          ) : (
            <Empty
              title="Jobs that complete are billed here."
              {...(isNow ? { command: FIRST_JOB } : {})}
            >
              {isNow ? "None has completed in this month yet. Submit one:" : undefined}
            </Empty>
          )
        }
      />
      <RecordDialog
        jobId={search.record}
        record={list.rows?.find(({ job_id }) => job_id === search.record)}
        onClose={() => onChange({ record: "" })}
      />
    </Section>
  );
}
