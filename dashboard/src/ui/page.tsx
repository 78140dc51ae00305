import type { ReactNode } from "react";
import { useEffect } from "react";
import { cx } from "./cx";
import styles from "./page.module.css";
import { Scope, type Shown } from "./scope";

interface Props {
  title: string;
  /** Shown as the heading instead of `title`, for example with a status mark and an id. */
  heading?: ReactNode;
  /** A link to the parent page, shown above the heading. */
  above?: ReactNode;
  actions?: ReactNode;
  /** Whose data the page shows. The page says so next to its heading, but only to admins. */
  shows?: Shown;
  /** Limits the width of the page, because narrow forms are easier to read. */
  narrow?: boolean;
  children: ReactNode;
}

export function Page({ title, heading, above, actions, shows, narrow, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Forge`;
  }, [title]);
  return (
    <div className={cx(styles.page, narrow && styles.narrow)}>
      <header className={styles.header}>
        <div className={styles.titles}>
          {above && <div className="note">{above}</div>}
          <div className={styles.heading}>
            <h1 className={styles.heading}>{heading ?? title}</h1>
            {shows && <Scope of={shows} />}
          </div>
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Lays out its children below each other. @param gap in px. */
export const Stack = ({ gap, children }: { gap: number; children: ReactNode }) => (
  <div className={styles.stack} style={{ gap }}>
    {children}
  </div>
);

/** A part of a page with its own heading. */
export function Section({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className={styles.section}>
      <header className={styles.sectionHeader}>
        <h2>{title}</h2>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </section>
  );
}
