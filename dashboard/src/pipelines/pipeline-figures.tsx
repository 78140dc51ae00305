import type { Pipeline } from "@forge/sdk";
import { Meter } from "../ui/bars";
import { Figure, Figures } from "../ui/figure";
import { formatDuration, formatUsd } from "../ui/format";
import { Money } from "../ui/money";
import { Duration } from "../ui/time";
import styles from "./pipeline-figures.module.css";
import { isOver } from "./pipeline-state";

const BUDGET_STATES: Record<string, string> = {
  ok: "of",
  warning: "near its budget of",
  exhausted: "has used up its budget of",
};

export function PipelineFigures({ pipeline }: { pipeline: Pipeline }) {
  const { steps, created_at, completed_at, estimated_cost_usd, expected_remaining_s } = pipeline;
  const isLive = !isOver(pipeline);
  const done = steps.filter(({ status }) => status === "completed").length;
  return (
    <Figures>
      <Figure
        name={isLive ? "Cost so far" : "Cost"}
        value={<Money usd={pipeline.cost_usd} />}
        note={<Budget pipeline={pipeline} />}
      />
      <Figure
        name={isLive ? "Expected in all" : "Runs"}
        value={isLive ? formatUsd(estimated_cost_usd) : pipeline.run}
        note={
          isLive
            ? estimated_cost_usd == null
              ? "not known: a step's type has not run yet"
              : "by your last jobs of each type"
            : pipeline.run === 1
              ? "it was not resumed"
              : "one, and one more with each resume"
        }
      />
      <Figure
        name={isLive ? "Running for" : "Took"}
        value={<Duration from={created_at} to={completed_at} />}
        note={
          isLive &&
          (expected_remaining_s == null
            ? "time left: not known yet"
            : `about ${formatDuration(expected_remaining_s * 1000)} left, without waiting`)
        }
      />
      <Figure
        name="Steps completed"
        value={`${done} of ${steps.length}`}
        note={<Meter share={steps.length > 0 ? done / steps.length : 0} label="Steps completed" />}
      />
    </Figures>
  );
}

function Budget({ pipeline }: { pipeline: Pipeline }) {
  const { budget_usd: budget, budget_state, cost_usd } = pipeline;
  if (budget === null) return "no budget is set";
  return (
    <span className={styles.budget}>
      <span>
        {BUDGET_STATES[budget_state ?? "ok"] ?? "of"} {formatUsd(budget)}
      </span>
      <Meter share={budget > 0 ? cost_usd / budget : 1} label="Spent of the budget" />
    </span>
  );
}
