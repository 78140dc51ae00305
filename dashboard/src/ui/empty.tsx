import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Snippet } from "./copy";
import styles from "./empty.module.css";

interface Props {
  /** One sentence that says what will appear here. */
  title: string;
  children?: ReactNode;
  /** A working command that creates something to show here. */
  command?: string;
  action?: ReactNode;
}

export function Empty({ title, children, command, action }: Props) {
  return (
    <div className={styles.empty}>
      <p className={styles.title}>{title}</p>
      {children && <p className="quiet">{children}</p>}
      {command && <Snippet code={command} label="Copy the command" />}
      {action && <div className={styles.action}>{action}</div>}
    </div>
  );
}

type Listed = "job" | "pipeline" | "worker" | "artifact" | "deployment";

/** Shown in a list when the filters match no row. */
export const NothingMatches = ({ thing }: { thing: Listed }) => (
  <Empty
    title={`No ${thing} matches these filters.`}
    action={
      <Link to={`/${thing}s`} search={{}}>
        Clear all filters
      </Link>
    }
  />
);
