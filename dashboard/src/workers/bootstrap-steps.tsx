import type { WorkerDetail } from "@forge/sdk";
import { useState } from "react";
import { Button } from "../ui/button";
import { plural } from "../ui/format";
import { KeyValue } from "../ui/key-value";
import { Section } from "../ui/page";
import { type Mark, StatusMark } from "../ui/status-mark";
import { Duration } from "../ui/time";
import styles from "./bootstrap-steps.module.css";

type Bootstrap = NonNullable<WorkerDetail["bootstrap"]>;
type Step = Bootstrap["steps"][number];

const MARKS: Record<string, Mark> = {
  pending: "pending",
  running: "running",
  completed: "completed",
  failed: "failed",
};

/** The setup of a machine over SSH: each step with its output. */
export function BootstrapSteps({ bootstrap }: { bootstrap: Bootstrap }) {
  return (
    <Section title="Set up over SSH">
      <KeyValue
        entries={[
          { name: "As", value: `${bootstrap.ssh_user}, port ${bootstrap.ssh_port}` },
          { name: "Host key", value: <code>{bootstrap.ssh_host_key ?? "not seen yet"}</code> },
          bootstrap.run > 1 && { name: "Run", value: bootstrap.run },
        ]}
      />
      <ol className={styles.steps} aria-label="Steps">
        {bootstrap.steps.map((step) => (
          <BootstrapStep key={step.step} step={step} />
        ))}
      </ol>
    </Section>
  );
}

function BootstrapStep({ step }: { step: Step }) {
  const isInteresting = step.status === "running" || step.status === "failed";
  const [isOpen, setOpen] = useState<boolean>();
  const showsLog = isOpen ?? isInteresting;
  return (
    <li className={styles.step}>
      <div className={styles.line}>
        <StatusMark mark={MARKS[step.status] ?? "pending"} label={step.status} />
        <span className={styles.does}>{step.does}</span>
        {step.tries > 1 && (
          <span className={styles.quiet}>{plural(step.tries, "try", "tries")}</span>
        )}
        {step.started_at && (
          <span className={styles.quiet}>
            <Duration from={step.started_at} to={step.ended_at} />
          </span>
        )}
        {step.log && (
          <Button
            size="small"
            kind="ghost"
            aria-expanded={showsLog}
            onClick={() => setOpen(!showsLog)}
          >
            {showsLog ? "Hide log" : "Log"}
          </Button>
        )}
      </div>
      {step.error && <p className={styles.error}>{step.error}</p>}
      {showsLog && step.log && (
        <pre className={styles.log} tabIndex={0}>
          {step.log}
        </pre>
      )}
    </li>
  );
}
