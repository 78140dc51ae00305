import type { PipelineStep } from "@forge/sdk";

/** The time span in which a step ran, or is expected to run. */
export interface StepSpan {
  step: PipelineStep;
  startMs: number;
  endMs: number;
  /** The step has not started: both times are a forecast. */
  isForecast: boolean;
  /** The step's duration is unknown: no job of its type has completed yet. */
  isUnknown: boolean;
}

const WILL_RUN: readonly string[] = ["pending", "waiting_approval"];

/**
 * The spans of all steps that have started or will start. The end of a running step, and both times
 * of a step that has not started, are estimates from recent durations of the job type.
 * @param steps in topological order.
 */
export function spansOf(steps: readonly PipelineStep[], nowMs: number): StepSpan[] {
  const spans = new Map<string, StepSpan>();
  for (const step of steps) {
    const span = spanOf(step, spans, nowMs);
    if (span) spans.set(step.name, span);
  }
  return [...spans.values()];
}

function spanOf(
  step: PipelineStep,
  before: ReadonlyMap<string, StepSpan>,
  nowMs: number,
): StepSpan | undefined {
  const expectedMs = (step.expected_duration_s ?? 0) * 1000;
  const isUnknown = step.expected_duration_s == null;
  if (step.started_at) {
    const startMs = Date.parse(step.started_at);
    if (step.completed_at) {
      const endMs = Date.parse(step.completed_at);
      return { step, startMs, endMs, isForecast: false, isUnknown: false };
    }
    const endMs = Math.max(nowMs, startMs + expectedMs);
    return { step, startMs, endMs, isForecast: false, isUnknown };
  }
  if (!WILL_RUN.includes(step.status)) return undefined;
  const ends = step.needs.map((name) => before.get(name)?.endMs ?? 0);
  const startMs = Math.max(nowMs, ...ends);
  return { step, startMs, endMs: startMs + expectedMs, isForecast: true, isUnknown };
}

/**
 * The steps that decide when the pipeline ends. Making other steps faster has no effect.
 * @param spans in topological order.
 */
export function criticalPath(spans: readonly StepSpan[]): ReadonlySet<string> {
  const path = new Set<string>();
  let at = latest(spans);
  while (at) {
    const { name, needs } = at.step;
    path.add(name);
    at = latest(spans.filter(({ step }) => needs.includes(step.name)));
  }
  return path;
}

/**
 * The span that ends last. If several end at that time, the last of them in topological order: with
 * a forecast duration of 0, a step ends at the same time as the step that it depends on.
 */
const latest = (spans: readonly StepSpan[]): StepSpan | undefined =>
  spans.reduce<StepSpan | undefined>(
    (last, span) => (last && last.endMs > span.endMs ? last : span),
    undefined,
  );
