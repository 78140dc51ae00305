import type { ReactNode } from "react";
import styles from "./key-value.module.css";

export interface Entry {
  name: string;
  value: ReactNode;
}

/** Names and values in two columns. Leaves out entries that are null or false. */
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
