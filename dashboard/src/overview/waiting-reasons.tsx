import type { JobCounts } from "@forge/sdk";
import { Bars } from "../ui/bars";
import { formatNumber } from "../ui/format";
import { Section } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";

/** Texts for the codes of `pending_reason`. */
export const REASONS: Record<string, string> = {
  no_worker: "no worker registered",
  no_worker_fits: "no worker fits",
  no_worker_available: "fitting workers out of service",
  provisioning: "worker being set up",
  over_share: "over the fair share",
  workers_busy: "workers busy",
  between_attempts: "between attempts",
  scheduling: "being assigned",
  other: "other",
};

export function WaitingReasons({ counts }: { counts: JobCounts | undefined }) {
  const reasons = Object.entries(counts?.by_pending_code ?? {})
    .filter(([, count]) => count > 0)
    .sort(([, one], [, other]) => other - one);
  return (
    <Section title="Why jobs wait">
      {counts === undefined ? (
        <SkeletonLines count={3} />
      ) : reasons.length === 0 ? (
        <p className="quiet">No job waits for a worker.</p>
      ) : (
        <Bars
          label="Waiting jobs by reason"
          bars={reasons.map(([code, count]) => ({
            label: REASONS[code] ?? code,
            value: count,
            text: formatNumber(count),
          }))}
        />
      )}
    </Section>
  );
}
