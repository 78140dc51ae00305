import type { ReactNode } from "react";
import styles from "./figure.module.css";

/** A large number with its name, and a line below it. */
export function Figure({
  name,
  value,
  note,
}: {
  name: string;
  value: ReactNode;
  note?: ReactNode;
}) {
  return (
    <div className={styles.figure}>
      <div className={styles.name}>{name}</div>
      <div className={styles.value}>{value}</div>
      {note && <div className={styles.note}>{note}</div>}
    </div>
  );
}

/** Figures side by side, divided by lines. */
export const Figures = ({ children }: { children: ReactNode }) => (
  <div className={styles.figures}>{children}</div>
);
