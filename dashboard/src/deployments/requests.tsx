import type { DeploymentStats } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { Curves, type Series } from "../ui/curves";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { Figure, Figures } from "../ui/figure";
import { ABSENT, formatDuration, formatNumber } from "../ui/format";
import { Stack } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";

const BUCKET_S = 600;
const POLL_MS = 10_000;
/** Poll interval while the deployment has had no request: the user waits for the first one. */
const FIRST_POLL_MS = 2_000;

/** The requests and responses of the deployment over the last day. */
export function Requests({ deploymentId, isLive }: { deploymentId: string; isLive: boolean }) {
  const forge = useForge();
  const { data, error, refetch } = useQuery({
    queryKey: ["deployments", "stats", deploymentId],
    queryFn: ({ signal }) =>
      forge.deployments.stats(deploymentId, { bucket_s: BUCKET_S }, { signal }),
    refetchInterval: ({ state }) => {
      if (!isLive) return false;
      return state.data?.total.requests === 0 ? FIRST_POLL_MS : POLL_MS;
    },
    meta: { live: false },
  });
  if (!data) {
    return error ? (
      <ErrorBanner what="The requests could not be loaded" error={error} onRetry={refetch} />
    ) : (
      <SkeletonLines count={6} />
    );
  }
  if (data.total.requests === 0) {
    return <Empty title="It got no requests in the last 24 h." />;
  }
  const shown = completeBuckets(data);
  return (
    <Stack gap={20}>
      <Totals total={data.total} />
      <Curves series={[...countsOf(shown), ...latenciesOf(shown)]} formatX={timeOfDay} />
      <p className="note">
        Sums and quantiles of 10 min each, over the last 24 h. A request ends with its answer.
        Tokens are what answers say.
      </p>
    </Stack>
  );
}

function Totals({ total }: { total: DeploymentStats["total"] }) {
  const { requests, errors, latency_p50_s, latency_p99_s, input_tokens, output_tokens } = total;
  const duration = (seconds: number | null): string =>
    seconds === null ? ABSENT : formatDuration(seconds * 1000);
  return (
    <Figures>
      <Figure
        name="Requests"
        value={formatNumber(requests)}
        note={errors > 0 ? `${formatNumber(errors)} failed` : "none failed"}
      />
      <Figure name="Median" value={duration(latency_p50_s)} note="to the answer's end" />
      <Figure name="p99" value={duration(latency_p99_s)} note="1 in 100 took longer" />
      <Figure
        name="Tokens written"
        value={formatNumber(output_tokens)}
        note={input_tokens !== null && `${formatNumber(input_tokens)} read`}
      />
    </Figures>
  );
}

type Bucket = DeploymentStats["buckets"][number];

const pointsOf = (buckets: readonly Bucket[], read: (bucket: Bucket) => number | null) =>
  buckets.flatMap((bucket) => {
    const y = read(bucket);
    return y === null ? [] : [{ x: Date.parse(bucket.at), y }];
  });

/**
 * Drops the last bucket if its period has not ended yet. The counts of an unfinished period are
 * low, so the curves would seem to fall. If this is the only bucket, it is kept.
 */
function completeBuckets({ buckets, until }: DeploymentStats): readonly Bucket[] {
  const ended = buckets.filter(({ at }) => Date.parse(at) + BUCKET_S * 1000 <= Date.parse(until));
  return ended.length > 0 ? ended : buckets;
}

/** The counts as curves. A period without requests has no bucket: its counts are drawn as 0. */
function countsOf(buckets: readonly Bucket[]): Series[] {
  const known = new Map(buckets.map((bucket) => [Date.parse(bucket.at), bucket]));
  const times = [...known.keys()];
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const steps = Array.from(
    { length: (last - first) / (BUCKET_S * 1000) + 1 },
    (_, step) => first + step * BUCKET_S * 1000,
  );
  const series = (name: string, read: (bucket: Bucket) => number | null): Series => ({
    name,
    points: steps.map((x) => {
      const bucket = known.get(x);
      return { x, y: (bucket && read(bucket)) ?? 0 };
    }),
  });
  return [
    series("Requests", ({ requests }) => requests),
    series("Errors", ({ errors }) => errors),
    ...(buckets.some(({ output_tokens }) => output_tokens !== null)
      ? [series("Tokens written", ({ output_tokens }) => output_tokens)]
      : []),
  ];
}

const latenciesOf = (buckets: readonly Bucket[]): Series[] =>
  (["Median latency", "p99 latency"] as const).map((name, at) => ({
    name,
    points: pointsOf(buckets, (each) => (at === 0 ? each.latency_p50_s : each.latency_p99_s)),
    formatY: (seconds) => formatDuration(seconds * 1000),
  }));

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const timeOfDay = (ms: number): string => clock.format(ms);
