import { CopyButton } from "./copy";
import styles from "./json.module.css";

/** A value as JSON, as the API gave it. It is text: nothing in it is ever markup. */
export function Json({ value, label }: { value: unknown; label: string }) {
  const text = JSON.stringify(value, null, 2) ?? "null";
  return (
    <section className={styles.json} aria-label={label}>
      <pre tabIndex={0}>{text}</pre>
      <span className={styles.copy}>
        <CopyButton text={text} label={`Copy ${label}`} />
      </span>
    </section>
  );
}
