import type { Worker } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { WorkerLink } from "../ui/links";
import { Section } from "../ui/page";
import { SkeletonLines } from "../ui/skeleton";
import { StatusMark } from "../ui/status-mark";
import { byTrouble, WorkerStatus, workerMark, workerStateName } from "../workers/worker-state";
import styles from "./fleet.module.css";

/**
 * Shows one mark per worker, for at most SHOWN workers. Lists workers with problems by name, at
 * most NAMED of them.
 */
export function Fleet({ workers }: { workers: readonly Worker[] | undefined }) {
  const sorted = [...(workers ?? [])].sort(byTrouble);
  const troubled = sorted.filter(({ status }) => status === "error" || status === "dead");
  return (
    <Section title="Fleet">
      {workers === undefined ? (
        <SkeletonLines count={3} />
      ) : workers.length === 0 ? (
        <p className="quiet">
          No worker is registered. <Link to="/workers">See how to add one</Link>
        </p>
      ) : (
        <>
          <p className="quiet">{summary(sorted)}</p>
          <ul className={styles.marks}>
            {sorted.slice(0, SHOWN).map((worker) => (
              <li key={worker.worker_id}>
                <Link
                  to="/workers/$workerId"
                  params={{ workerId: worker.worker_id }}
                  title={`${worker.worker_id}: ${workerStateName(worker).toLowerCase()}`}
                  aria-label={`${worker.worker_id}: ${workerStateName(worker).toLowerCase()}`}
                >
                  <StatusMark mark={workerMark(worker)} />
                </Link>
              </li>
            ))}
          </ul>
          <ul className={styles.troubled}>
            {troubled.slice(0, NAMED).map((worker) => (
              <li key={worker.worker_id}>
                <WorkerStatus worker={worker} />
                <WorkerLink id={worker.worker_id} />
                <span className="quiet">{worker.status_reason}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

/** For example "1 dead, 2 busy", problems first. */
function summary(sorted: readonly Worker[]): string {
  const counts = new Map<string, number>();
  for (const worker of sorted) {
    const name = workerStateName(worker).toLowerCase();
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} ${name}`).join(", ");
}

const SHOWN = 240;
const NAMED = 6;
