import type { ReactNode } from "react";
import styles from "./toolbar.module.css";

/** A row above a list: filters at the left, other controls at the right. */
export const Toolbar = ({ children, end }: { children: ReactNode; end?: ReactNode }) => (
  <div className={styles.toolbar}>
    <div className={styles.start}>{children}</div>
    {end && <div className={styles.start}>{end}</div>}
  </div>
);
