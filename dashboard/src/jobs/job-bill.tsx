import type { BillingRecord } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { isNotFound } from "../api/errors";
import { Empty } from "../ui/empty";
import { ErrorBanner, Notice } from "../ui/error-banner";
import { formatNumber } from "../ui/format";
import { KeyValue } from "../ui/key-value";
import { Money } from "../ui/money";
import { Stack } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";
import styles from "./job-bill.module.css";
import { isFinished, type JobData } from "./job-data";

export function JobBill({ job }: { job: JobData }) {
  const forge = useForge();
  const { data, error, refetch } = useQuery({
    queryKey: ["billing", "record", job.job_id, job.raw_status],
    queryFn: ({ signal }) => forge.billing.record(job.job_id, { signal }),
  });
  if (isNotFound(error)) {
    return (
      <Empty
        title={
          isFinished(job) ? "Nothing is billed for this job." : "A job is billed when it completes."
        }
      />
    );
  }
  if (error) {
    return <ErrorBanner what="The bill could not be loaded" error={error} onRetry={refetch} />;
  }
  return data ? <Bill record={data} /> : <SkeletonLines count={4} />;
}

export function Bill({ record }: { record: BillingRecord }) {
  const parts = Object.entries(record.cost_breakdown).filter(([, usd]) => usd > 0);
  const metrics = Object.entries(record.metrics).filter(([, value]) => value !== 0);
  return (
    <Stack gap={12}>
      <p className={styles.total}>
        <Money usd={record.total_cost_usd} digits={6} />
        <span>{record.state === "final" ? "final" : "so far, and growing"}</span>
      </p>
      <p className={styles.formula}>
        <code>{record.formula}</code>
      </p>
      {record.flags.map((flag) => (
        <Notice key={flag} tone="warn">
          {flag.replaceAll("_", " ")}
        </Notice>
      ))}
      <KeyValue
        entries={[
          { name: "Rate card", value: `${record.rate_card}, version ${record.rate_card_version}` },
          ...parts.map(([name, usd]) => ({ name, value: <Money usd={usd} digits={6} /> })),
          ...metrics.map(([name, value]) => ({
            name: name.replaceAll("_", " "),
            value: typeof value === "number" ? formatNumber(value, 6) : value,
          })),
        ]}
      />
    </Stack>
  );
}
