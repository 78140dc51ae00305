import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useForge } from "../api/context";
import { Columns } from "../ui/columns";
import { ErrorBanner } from "../ui/error-banner";
import { formatNumber } from "../ui/format";
import { Section } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";

const BUCKET_S = 1_800;
const POLL_MS = 30_000;

const SERIES = [
  { name: "completed", color: "var(--state-completed)" },
  { name: "failed", color: "var(--state-failed)" },
];

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Jobs that ended in the last day. */
export function Throughput() {
  const forge = useForge();
  const navigate = useNavigate();
  const { data, error } = useQuery({
    queryKey: ["jobs", "throughput", BUCKET_S],
    queryFn: ({ signal }) => forge.jobs.throughput({ bucket_s: BUCKET_S }, { signal }),
    refetchInterval: POLL_MS,
    meta: { live: false },
  });
  const open = (first = "", last = ""): void =>
    void navigate({
      to: "/jobs",
      search: {
        ended_after: first,
        ended_before: new Date(Date.parse(last) + BUCKET_S * 1000).toISOString(),
      },
    });
  return (
    <Section title="Ended in the last 24 h">
      {error && <ErrorBanner what="The chart could not be updated" error={error} />}
      {data ? (
        <Columns
          label="Jobs that ended, by half hours"
          series={SERIES}
          columns={data.buckets.map(({ at, completed, failed }) => ({
            from: clock.format(Date.parse(at)),
            to: clock.format(Date.parse(at) + BUCKET_S * 1000),
            values: [completed, failed],
          }))}
          format={(value) => formatNumber(value)}
          ends={[clock.format(Date.parse(data.since)), "now"]}
          onSpan={(first, last) => open(data.buckets[first]?.at, data.buckets[last]?.at)}
        />
      ) : (
        !error && <SkeletonLines count={5} />
      )}
    </Section>
  );
}
