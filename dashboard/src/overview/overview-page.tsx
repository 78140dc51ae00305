import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { POLL_MS } from "../api/queries";
import { FIRST_JOB } from "../jobs/job-data";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { Page } from "../ui/page";
import { useWorkers } from "../workers/use-workers";
import { Approvals } from "./approvals";
import { Failures } from "./failures";
import { Fleet } from "./fleet";
import { KeyFigures } from "./key-figures";
import styles from "./overview-page.module.css";
import { Throughput } from "./throughput";
import { WaitingReasons } from "./waiting-reasons";

export function OverviewPage() {
  const forge = useForge();
  const counts = useQuery({
    queryKey: ["jobs", "counts"],
    queryFn: ({ signal }) => forge.jobs.counts({}, { signal }),
    refetchInterval: POLL_MS,
  });
  const month = useQuery({
    queryKey: ["billing", "summary", "now"],
    queryFn: ({ signal }) => forge.billing.summary(undefined, {}, { signal }),
    refetchInterval: POLL_MS * 4,
  });
  const workers = useWorkers();
  const isUnused =
    counts.data !== undefined &&
    Object.values(counts.data.by_status).every((count) => count === 0) &&
    month.data?.records === 0;
  return (
    <Page title="Overview" shows="all">
      {counts.error && (
        <ErrorBanner
          what="The numbers could not be updated"
          error={counts.error}
          onRetry={counts.refetch}
        />
      )}
      <Approvals />
      <KeyFigures counts={counts.data} month={month.data} workers={workers.data} />
      {isUnused ? (
        <Empty title="No job has run yet." command={FIRST_JOB}>
          Submit the first one with the command forge:
        </Empty>
      ) : (
        <div className={styles.parts}>
          <Throughput />
          <WaitingReasons counts={counts.data} />
          <Failures counts={counts.data} />
          <Fleet workers={workers.data} />
        </div>
      )}
    </Page>
  );
}
