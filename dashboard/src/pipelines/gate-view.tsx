import type { PipelineStep } from "@forge/sdk";
import { Status } from "../ui/status-mark";
import { shownValue } from "./explain-pipeline";
import styles from "./verdict.module.css";

type Gate = NonNullable<PipelineStep["gate"]>;

/** A gate's condition and the numbers that decided it. */
export function GateView({ gate }: { gate: Gate }) {
  const values = Object.entries(gate.values);
  return (
    <div className={styles.verdict}>
      <div className={styles.head}>
        <GateStatus gate={gate} />
        <code className={styles.condition}>{gate.condition}</code>
      </div>
      {values.length > 0 && (
        <dl className={styles.values}>
          {values.map(([path, value]) => (
            <div key={path}>
              <dt>
                <code>{path}</code>
              </dt>
              <dd>{value === null ? "not in the result" : shownValue(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      {gate.error && <p className={styles.note}>{gate.error}</p>}
    </div>
  );
}

function GateStatus({ gate: { passed } }: { gate: Gate }) {
  if (passed === null) return <Status mark="pending" text="Gate" />;
  return passed ? (
    <Status mark="completed" text="Gate passed" />
  ) : (
    <Status mark="failed" text="Gate did not hold" />
  );
}
