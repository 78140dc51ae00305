import type { BillingRecord } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { Bill } from "../jobs/job-bill";
import { Dialog } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { formatNumber } from "../ui/format";
import { JobLink } from "../ui/links";
import { SkeletonLines } from "../ui/skeleton";
import { Time } from "../ui/time";
import plain from "./plain-table.module.css";
import styles from "./record-dialog.module.css";

interface Props {
  /** The job whose record is open; undefined: none. */
  jobId: string | undefined;
  /** The record from the list; fetched if undefined. */
  record: BillingRecord | undefined;
  onClose: () => void;
}

export function RecordDialog({ jobId, record, onClose }: Props) {
  return (
    <Dialog
      open={jobId !== undefined}
      onClose={onClose}
      title={record ? `Bill of this ${record.job_type} job` : "Bill"}
      wide
    >
      {jobId && <Content jobId={jobId} listed={record} />}
    </Dialog>
  );
}

function Content({ jobId, listed }: { jobId: string; listed: BillingRecord | undefined }) {
  const forge = useForge();
  const { data, error, refetch } = useQuery({
    queryKey: ["billing", "record", jobId],
    queryFn: ({ signal }) => forge.billing.record(jobId, { signal }),
    enabled: listed === undefined,
  });
  const record = listed ?? data;
  if (!record) {
    if (!error) return <SkeletonLines count={4} />;
    return <ErrorBanner what="The record could not be loaded" error={error} onRetry={refetch} />;
  }
  return (
    <>
      <p className={styles.about}>
        <JobLink id={jobId}>
          <code>{jobId}</code>
        </JobLink>{" "}
        Written <Time at={record.created_at} />
      </p>
      <Bill record={record} />
      <Attempts record={record} />
    </>
  );
}

/** The usage of each attempt, and whether it is billed. */
function Attempts({ record: { attempts } }: { record: BillingRecord }) {
  if (attempts.length === 0) return null;
  return (
    <section className={plain.scroll} tabIndex={0} aria-label="Attempts">
      <table className={plain.table}>
        <thead>
          <tr>
            <th scope="col">Attempt</th>
            <th scope="col">Outcome</th>
            <th scope="col" className={plain.right}>
              GPU h measured
            </th>
            <th scope="col" className={plain.right}>
              GPU h counted
            </th>
            <th scope="col">Billed</th>
          </tr>
        </thead>
        <tbody>
          {attempts.map(({ attempt, outcome, billed, gpu_hours, gpu_hours_measured }) => (
            <tr key={attempt}>
              <td>{attempt}</td>
              <td>{outcome.replaceAll("_", " ")}</td>
              <td className={plain.right}>{formatNumber(gpu_hours_measured, 6)}</td>
              <td className={plain.right}>{formatNumber(gpu_hours, 6)}</td>
              <td>{billed ? "yes" : "no"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
