import { CopyButton } from "./copy";
import { cx } from "./cx";
import styles from "./json.module.css";

/** A value as JSON, as the API gave it. It is text: nothing in it is ever markup. */
export function Json({
  value,
  label,
  isWhole = false,
}: {
  value: unknown;
  label: string;
  /** It is all that is shown: as long as it is, without a scroll bar of its own. */
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
