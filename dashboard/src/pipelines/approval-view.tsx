import type { PipelineStep } from "@forge/sdk";
import { Status } from "../ui/status-mark";
import { Time } from "../ui/time";
import styles from "./verdict.module.css";

type Approval = NonNullable<PipelineStep["approval"]>;

/** Whether the step was approved, by whom, when and why. */
export function ApprovalView({ step, approval }: { step: PipelineStep; approval: Approval }) {
  const { approved, by, at, note } = approval;
  const waits = step.status === "waiting_approval";
  return (
    <div className={styles.verdict}>
      <div className={styles.head}>
        {approved === null ? (
          <Status
            mark={waits ? "waiting" : "pending"}
            text={waits ? "Waits for your approval" : "Will wait for an approval"}
          />
        ) : (
          <>
            <Status
              mark={approved ? "completed" : "failed"}
              text={approved ? "Approved" : "Rejected"}
            />
            <span className="quiet">
              by {by ?? "someone"}, <Time at={at} />
            </span>
          </>
        )}
      </div>
      {note && (
        <p className={styles.note}>
          “<bdi>{note}</bdi>”
        </p>
      )}
    </div>
  );
}
