import { CircleCheck } from "lucide-react";
import type { ReactNode } from "react";
import { isNotFound } from "../api/errors";
import { Id } from "./copy";
import styles from "./detail.module.css";
import { Empty } from "./empty";
import { ErrorBanner, Notice, type Tone } from "./error-banner";
import { SkeletonLines } from "./skeleton";
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

export interface Explanation {
  tone: Tone;
  /** Why the object is in its state. */
  why: string;
  /** What to do, or what happens without action. */
  next: string;
}

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
      <bdi className="quiet">{next}</bdi>
    </Notice>
  );
}

/** Shown on a detail page while the object loads, if loading failed, or if it does not exist. */
export function NotLoaded({
  thing,
  missing = `There is no ${thing} with this id, or it is another tenant's.`,
  error,
  onRetry,
}: {
  /** For example "job". */
  thing: string;
  missing?: string;
  error: unknown;
  onRetry: () => void;
}) {
  if (isNotFound(error)) return <Empty title={missing} />;
  if (!error) return <SkeletonLines count={8} />;
  return <ErrorBanner what={`The ${thing} could not be loaded`} error={error} onRetry={onRetry} />;
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
