import { useMemo } from "react";
import { cx } from "../ui/cx";
import { Empty } from "../ui/empty";
import { formatDuration } from "../ui/format";
import { StatusMark } from "../ui/status-mark";
import { useNow } from "../ui/ticker";
import { criticalPath, type StepSpan, spansOf } from "./critical-path";
import styles from "./gantt.module.css";
import { isOver, stepMark, stepStateName } from "./pipeline-state";
import type { PipelineViewProps } from "./pipeline-view";
import { type TimeAxis, timeAxis } from "./time-axis";
import { usePipelineJobs } from "./use-pipeline";

/** When each step ran or is expected to run, with the critical path. */
export function Gantt({ pipeline, chosen, onChoose }: PipelineViewProps) {
  const over = isOver(pipeline);
  // For an ended pipeline, `nowMs` stays at the pipeline's end.
  const nowMs = useNow((now) => (over ? Date.parse(pipeline.completed_at ?? "") || now : now));
  const jobs = usePipelineJobs(pipeline).data;
  const workBegan = useMemo(
    () => new Map(jobs?.map((job) => [job.job_id, Date.parse(job.started_at ?? "")])),
    [jobs],
  );
  const spans = spansOf(pipeline.steps, nowMs);
  if (spans.length === 0) return <Empty title="No step has begun." />;
  const critical = criticalPath(spans);
  const axis = timeAxis(spans);
  const fromMs = Math.min(...spans.map(({ startMs }) => startMs));
  const known = new Map(spans.map((span) => [span.step.name, span]));
  return (
    <div className={styles.gantt}>
      <Axis axis={axis} fromMs={fromMs} />
      <ol aria-label="Timeline of the steps">
        {pipeline.steps.map((step) => {
          const span = known.get(step.name);
          const isCritical = critical.has(step.name);
          return (
            <li key={step.name}>
              <button
                type="button"
                className={cx(styles.row, step.name === chosen && styles.chosen)}
                aria-pressed={step.name === chosen}
                onClick={() => onChoose(step.name)}
              >
                <span className={styles.name}>
                  <StatusMark mark={stepMark(step)} label={stepStateName(step)} />
                  <span className={cx(styles.text, isCritical && styles.critical)}>
                    {step.name}
                  </span>
                  {isCritical && <span className="visually-hidden">on the critical path</span>}
                </span>
                <span className={styles.track}>
                  <Grid axis={axis} fromMs={fromMs} />
                  {span && (
                    <Bar
                      span={span}
                      axis={axis}
                      isCritical={isCritical}
                      workMs={workBegan.get(step.job_id ?? "")}
                    />
                  )}
                </span>
                <span className={styles.took}>{tookOf(span, nowMs)}</span>
              </button>
            </li>
          );
        })}
      </ol>
      <Legend axis={axis} />
    </div>
  );
}

const percent = (share: number): string => `${(share * 100).toFixed(3)}%`;

function Axis({ axis, fromMs }: { axis: TimeAxis; fromMs: number }) {
  return (
    <div className={styles.axis} aria-hidden="true">
      <span className={styles.scale}>
        {axis.ticks.map((ms) => (
          <span
            key={ms}
            className={styles.tick}
            style={{ left: percent(axis.shareOf(fromMs + ms)) }}
          >
            {ms === 0 ? "0" : formatDuration(ms)}
          </span>
        ))}
        {axis.breaks.map(({ startMs, endMs }) => (
          <span
            key={startMs}
            className={styles.idle}
            style={{ left: percent((axis.shareOf(startMs) + axis.shareOf(endMs)) / 2) }}
          >
            {formatDuration(endMs - startMs)} idle
          </span>
        ))}
      </span>
    </div>
  );
}

function Grid({ axis, fromMs }: { axis: TimeAxis; fromMs: number }) {
  return (
    <>
      {axis.ticks.map((ms) => (
        <span
          key={ms}
          className={styles.line}
          style={{ left: percent(axis.shareOf(fromMs + ms)) }}
        />
      ))}
      {axis.breaks.map(({ startMs, endMs }) => {
        const left = axis.shareOf(startMs);
        return (
          <span
            key={startMs}
            className={styles.break}
            style={{ left: percent(left), width: percent(axis.shareOf(endMs) - left) }}
          />
        );
      })}
    </>
  );
}

function Bar({
  span: { step, startMs, endMs, isForecast },
  axis,
  isCritical,
  workMs,
}: {
  span: StepSpan;
  axis: TimeAxis;
  isCritical: boolean;
  /** When a worker started the job, in ms since the epoch. */
  workMs: number | undefined;
}) {
  const left = axis.shareOf(startMs);
  const place = { left: percent(left), width: percent(axis.shareOf(endMs) - left) };
  const queuedMs = isForecast || step.reused ? 0 : Math.min(workMs || endMs, endMs) - startMs;
  const queued = endMs > startMs ? Math.max(0, queuedMs) / (endMs - startMs) : 0;
  return (
    <span
      className={cx(
        styles.bar,
        styles[step.status],
        isForecast && styles.forecast,
        isCritical && styles.isCritical,
      )}
      style={place}
      title={`${isForecast ? "expected " : ""}${formatDuration(endMs - startMs)}${
        queued > 0 ? `, of which ${formatDuration(queuedMs)} waiting for a worker` : ""
      }`}
    >
      {queued > 0 && <span className={styles.queued} style={{ width: percent(queued) }} />}
    </span>
  );
}

function tookOf(span: StepSpan | undefined, nowMs: number): string {
  if (!span) return "";
  const { startMs, endMs, isForecast, isUnknown, step } = span;
  if (isForecast) return isUnknown ? "not known" : `≈ ${formatDuration(endMs - startMs)}`;
  // The duration of a running step is shown in whole seconds.
  if (step.completed_at === null) {
    return formatDuration(Math.max(1, Math.floor((nowMs - startMs) / 1000)) * 1000);
  }
  return formatDuration(endMs - startMs);
}

function Legend({ axis }: { axis: TimeAxis }) {
  return (
    <p className={styles.legend}>
      <span>
        <span className={cx(styles.key, styles.keyCritical)} /> on the critical path
      </span>
      <span>
        <span className={cx(styles.key, styles.keyQueued)} /> waiting for a worker
      </span>
      <span>
        <span className={cx(styles.key, styles.keyForecast)} /> expected
      </span>
      {axis.breaks.length > 0 && (
        <span>
          <span className={cx(styles.key, styles.keyBreak)} /> idle, shortened
        </span>
      )}
    </p>
  );
}
