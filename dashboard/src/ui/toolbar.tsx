import type { ReactNode } from "react";
import styles from "./toolbar.module.css";

/** Filters at the left and the other controls at the right of a list. */
export const Toolbar = ({ children, end }: { children: ReactNode; end?: ReactNode }) => (
  <div className={styles.toolbar}>
    <div className={styles.start}>{children}</div>
    {end && <div className={styles.start}>{end}</div>}
  </div>
);
