import { useQuery } from "@tanstack/react-query";
import { useForge } from "../api/context";
import { formatNumber } from "../ui/format";
import { Section } from "../ui/page";
import { Sparkline } from "../ui/sparkline";
import styles from "./samples.module.css";

const BUCKET_S = 900;
const POLL_MS = 60_000;

/** The worker's utilisation over the last day. */
export function Samples({ workerId }: { workerId: string }) {
  const forge = useForge();
  const { data } = useQuery({
    queryKey: ["workers", "samples", workerId],
    queryFn: ({ signal }) => forge.workers.samples(workerId, { bucket_s: BUCKET_S }, { signal }),
    refetchInterval: POLL_MS,
    meta: { live: false },
  });
  const util = data?.samples.flatMap((sample) => sample.util ?? []) ?? [];
  const memory = data?.samples.flatMap((sample) => sample.mem_used ?? []) ?? [];
  const isFlat = util.every((value) => value === 0) && memory.every((value) => value === 0);
  // A worker without a GPU reports zeros: there is nothing to show.
  if (Math.max(util.length, memory.length) < 2 || isFlat) return null;
  return (
    <Section title="Last 24 h">
      <div className={styles.series}>
        <Series name="Utilisation" unit="%" values={util} />
        <Series name="Memory" unit="GB" values={memory} />
      </div>
    </Section>
  );
}

function Series({ name, unit, values }: { name: string; unit: string; values: readonly number[] }) {
  if (values.length < 2) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const summary = `${formatNumber(mean, 1)} ${unit} on average, ${formatNumber(Math.max(...values), 1)} ${unit} at most`;
  return (
    <div className={styles.one}>
      <span>{name}</span>
      <Sparkline values={values} label={`${name}: ${summary}`} />
      <span className={styles.quiet}>{summary}</span>
    </div>
  );
}
