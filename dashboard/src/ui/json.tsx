import { CopyButton } from "./copy";
import { cx } from "./cx";
import styles from "./json.module.css";

/** A value as formatted JSON. Always text, never markup. */
export function Json({
  value,
  label,
  isWhole = false,
}: {
  value: unknown;
  label: string;
  /** Shows the full height, without a scroll bar. */
  isWhole?: boolean;
}) {
  const text = JSON.stringify(value, null, 2) ?? "null";
  return (
    <section className={cx(styles.json, isWhole && styles.whole)} aria-label={label}>
      <pre tabIndex={0}>{text}</pre>
      <span className={styles.copy}>
        <CopyButton text={text} label={`Copy ${label}`} />
      </span>
    </section>
  );
}
