import { cx } from "./cx";
import styles from "./status-mark.module.css";

/** The icons that show a state. Each icon has its own shape: colour is never the only signal. */
export type Mark =
  | "pending"
  | "provisioning"
  | "assigned"
  | "running"
  | "completed"
  | "failed"
  | "cancelled"
  | "waiting"
  | "skipped";

/** How a state is shown. */
export interface StateStyle {
  mark: Mark;
  name: string;
}

/** How to show a state. An unknown state is shown by its name in the API. */
export const styleOf = (looks: Record<string, StateStyle>, state: string): StateStyle =>
  looks[state] ?? { mark: "pending", name: state };

const RING = { cx: 7, cy: 7, r: 5.25, fill: "none", stroke: "currentColor", strokeWidth: 1.5 };

const SHAPES: Record<Mark, React.ReactElement> = {
  pending: <circle {...RING} />,
  provisioning: <circle {...RING} strokeDasharray="2.1 2.023" />,
  assigned: (
    <>
      <circle {...RING} />
      <path d="M7 3.5a3.5 3.5 0 0 1 0 7z" fill="currentColor" />
    </>
  ),
  running: (
    <>
      <circle {...RING} opacity="0.3" />
      <path d="M7 1.750A5.250 5.250 0 1 1 1.750 7" {...stroke()} />
    </>
  ),
  completed: disc("m4.300 7.200 1.900 1.900 3.500-3.800"),
  failed: disc("m4.900 4.900 4.200 4.200m0-4.200L4.900 9.100"),
  cancelled: disc("M4.200 7h5.600"),
  // Waits for a person's approval.
  waiting: (
    <>
      <circle {...RING} />
      <path d="M5.600 5v4M8.400 5v4" {...stroke()} />
    </>
  ),
  skipped: <path d="m3 11 8-8" {...stroke()} />,
};

/** A filled circle with a sign in it. */
function disc(sign: string) {
  return (
    <>
      <circle cx="7" cy="7" r="6" fill="currentColor" />
      <path d={sign} {...stroke("var(--bg)")} />
    </>
  );
}

function stroke(color = "currentColor") {
  return { fill: "none", stroke: color, strokeWidth: 1.6, strokeLinecap: "round" as const };
}

/** @param label for screen readers; omit it if the state's name is shown next to the mark. */
export function StatusMark({ mark, label }: { mark: Mark; label?: string }) {
  return (
    <svg
      className={cx(styles.mark, styles[mark])}
      width="14"
      height="14"
      viewBox="0 0 14 14"
      {...(label ? { role: "img", "aria-label": label } : { "aria-hidden": true })}
    >
      {SHAPES[mark]}
    </svg>
  );
}

export function Status({ mark, text, title }: { mark: Mark; text: string; title?: string }) {
  return (
    <span className={styles.status} title={title}>
      <StatusMark mark={mark} />
      <span>{text}</span>
    </span>
  );
}
