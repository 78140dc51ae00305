import type { Attempt } from "@forge/sdk";
import { cx } from "../ui/cx";
import { formatDuration } from "../ui/format";
import { type Mark, Status } from "../ui/status-mark";
import { useNow } from "../ui/ticker";
import styles from "./attempts-bar.module.css";
import type { JobData } from "./job-data";

interface Segment {
  phase: "queued" | "assigned" | "running" | "finalising";
  fromMs: number;
  toMs: number;
}

/** Each attempt on one time axis: the time queued, assigned, running and finalising. */
export function AttemptsBar({ job, attempts }: { job: JobData; attempts: readonly Attempt[] }) {
  const end = job.completed_at ? Date.parse(job.completed_at) : undefined;
  const nowMs = useNow((now) => end ?? now);
  const startMs = Date.parse(attempts[0]?.queued_at ?? job.created_at);
  const span = Math.max(1, nowMs - startMs);
  const share = (ms: number): string => `${Math.max(0, Math.min(100, (ms / span) * 100))}%`;
  return (
    <ol className={styles.list}>
      {attempts.map((attempt) => {
        const segments = segmentsOf(attempt, job, attempt === attempts.at(-1), nowMs);
        return (
          <li key={attempt.attempt} className={styles.attempt}>
            <div className={styles.name}>
              <Status mark={markOf(attempt)} text={`Attempt ${attempt.attempt}`} />
              <span className={styles.about}>{aboutOf(attempt)}</span>
            </div>
            <div className={styles.track}>
              {segments.map(({ phase, fromMs, toMs }) => (
                <span
                  key={phase}
                  className={cx(styles.segment, styles[phase])}
                  style={{ left: share(fromMs - startMs), width: share(toMs - fromMs) }}
                  title={`${phase} ${formatDuration(toMs - fromMs)}`}
                />
              ))}
            </div>
            <dl className={styles.phases}>
              {segments.map(({ phase, fromMs, toMs }) => (
                <div key={phase}>
                  <dt>
                    <span className={cx("swatch", styles[phase])} aria-hidden="true" />
                    {phase}
                  </dt>
                  <dd>{formatDuration(toMs - fromMs)}</dd>
                </div>
              ))}
            </dl>
          </li>
        );
      })}
    </ol>
  );
}

function segmentsOf(attempt: Attempt, job: JobData, isLast: boolean, nowMs: number): Segment[] {
  const at = (time: string | null): number | undefined => (time ? Date.parse(time) : undefined);
  const queued = Date.parse(attempt.queued_at);
  const assigned = at(attempt.assigned_at);
  const started = at(attempt.started_at);
  const ended = at(attempt.ended_at);
  // Only the attempt that ends the job has the phase `finalising`. After any other attempt, the
  // job is queued for the next one instead.
  const isFinal = attempt.outcome === "completed" || (isLast && job.completed_at !== null);
  const done = at(job.completed_at);
  const bounds: [Segment["phase"], number | undefined, number | undefined][] = [
    ["queued", queued, assigned ?? ended ?? nowMs],
    ["assigned", assigned, started ?? ended ?? nowMs],
    ["running", started, ended ?? nowMs],
    ["finalising", isFinal ? ended : undefined, done ?? nowMs],
  ];
  return bounds.flatMap(([phase, fromMs, toMs]) =>
    fromMs === undefined || toMs === undefined || toMs <= fromMs ? [] : [{ phase, fromMs, toMs }],
  );
}

function markOf({ outcome, started_at, assigned_at }: Attempt): Mark {
  if (outcome === "completed") return "completed";
  if (outcome === "cancelled") return "cancelled";
  if (outcome) return "failed";
  if (started_at) return "running";
  return assigned_at ? "assigned" : "pending";
}

const OUTCOMES: Record<string, string> = {
  failed: "failed",
  worker_lost: "worker lost",
  timeout: "timed out",
  cancelled: "cancelled",
};

const aboutOf = ({ worker_id, outcome }: Attempt): string =>
  [worker_id && `on ${worker_id}`, outcome && OUTCOMES[outcome]].filter(Boolean).join(", ");
