import styles from "./bars.module.css";

export interface Bar {
  label: string;
  value: number;
  /** The formatted value, e.g. "$1.20". */
  text: string;
}

/** Horizontal bars, each with its name and value as text. */
export function Bars({ bars, label }: { bars: readonly Bar[]; label: string }) {
  const largest = Math.max(...bars.map(({ value }) => value), 0);
  return (
    <ul className={styles.bars} aria-label={label}>
      {bars.map((bar) => (
        <li key={bar.label} className={styles.bar}>
          <span className={styles.label}>{bar.label}</span>
          <span className={styles.track} aria-hidden="true">
            <span
              className={styles.fill}
              style={{ width: `${largest > 0 ? (bar.value / largest) * 100 : 0}%` }}
            />
          </span>
          <span className={styles.value}>{bar.text}</span>
        </li>
      ))}
    </ul>
  );
}

/** A small bar that shows a share, e.g. of memory in use. @param share 0 to 1. */
export function Meter({ share, label }: { share: number | null; label: string }) {
  const percent = Math.round(Math.min(1, Math.max(0, share ?? 0)) * 100);
  return (
    <span
      className={styles.meter}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
    >
      <span className={styles.fill} style={{ width: `${percent}%` }} />
    </span>
  );
}
