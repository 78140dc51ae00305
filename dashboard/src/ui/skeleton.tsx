import styles from "./skeleton.module.css";

/** A placeholder while data is loading. @param width as CSS, e.g. "60%". */
export const Skeleton = ({ width = "100%", height = 12 }: { width?: string; height?: number }) => (
  <span className={styles.skeleton} style={{ width, height }} aria-hidden="true" />
);

const WIDTHS = ["72%", "54%", "64%", "46%", "58%", "68%"];

export function SkeletonLines({ count = 4 }: { count?: number }) {
  return (
    <div className={styles.lines} role="status" aria-label="Loading">
      {Array.from({ length: count }, (_, line) => (
        <Skeleton key={line} width={WIDTHS[line % WIDTHS.length] ?? "60%"} />
      ))}
    </div>
  );
}
