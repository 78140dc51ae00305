import type { ReactNode } from "react";
import styles from "./key-value.module.css";

export interface Entry {
  name: string;
  /** Null hides the entry. */
  value: ReactNode;
}

/** Names and values in two columns; in one column on a phone. */
export function KeyValue({ entries }: { entries: readonly (Entry | null | false)[] }) {
  return (
    <dl className={styles.list}>
      {entries.map(
        (entry) =>
          entry && (
            <div key={entry.name} className={styles.entry}>
              <dt>{entry.name}</dt>
              <dd>{entry.value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
