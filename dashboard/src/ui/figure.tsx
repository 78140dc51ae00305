import type { ReactNode } from "react";
import styles from "./figure.module.css";

interface Props {
  name: ReactNode;
  value: ReactNode;
  note?: ReactNode;
}

/**
 * A large number with its name and a note. If the name is a link, a click anywhere in the figure
 * follows it.
 */
export function Figure({ name, value, note }: Props) {
  return (
    <div className={styles.figure}>
      <div className={styles.name}>{name}</div>
      <div className={styles.value}>{value}</div>
      {note && <div className={styles.note}>{note}</div>}
    </div>
  );
}

/** Figures in a row, divided by lines. */
export const Figures = ({ children }: { children: ReactNode }) => (
  <div className={styles.figures}>{children}</div>
);
