import { CircleCheck } from "lucide-react";
import type { ReactNode } from "react";
import { Id } from "./copy";
import styles from "./detail.module.css";
import { Notice } from "./error-banner";
import { type Mark, StatusMark } from "./status-mark";

/** The heading of a detail page: state, title and id. */
export function DetailHeading({
  mark,
  state,
  title,
  id,
}: {
  mark?: Mark;
  state?: string;
  title?: string | undefined;
  id?: string;
}) {
  return (
    <>
      {mark && <StatusMark mark={mark} label={state ?? ""} />}
      {title && <span className={styles.title}>{title}</span>}
      {id && (
        <span className={styles.id}>
          <Id id={id} />
        </span>
      )}
    </>
  );
}

interface Explanation {
  tone: "neutral" | "ok" | "warn" | "danger";
  why: string;
  next: string;
}

/** Explains a state, and what comes next. */
export function Verdict({
  explanation: { tone, why, next },
  action,
}: {
  explanation: Explanation;
  action?: ReactNode;
}) {
  return (
    <Notice
      tone={tone}
      icon={tone === "ok" ? <CircleCheck size={15} /> : undefined}
      action={action}
    >
      <strong>
        <bdi>{why}</bdi>
      </strong>{" "}
      <bdi className={styles.next}>{next}</bdi>
    </Notice>
  );
}

/** A page's content with facts at its side, or below it in a narrow window. */
export function WithFacts({
  label,
  facts,
  children,
}: {
  label: string;
  facts: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className={styles.columns}>
      <div className={styles.main}>{children}</div>
      <aside className={styles.facts} aria-label={label}>
        {facts}
      </aside>
    </div>
  );
}
