import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { describeError } from "../api/errors";
import { Button } from "./button";
import { cx } from "./cx";
import styles from "./error-banner.module.css";

interface Props {
  error: unknown;
  /** What could not be done, e.g. "The job could not be loaded". */
  what: string;
  onRetry?: () => void;
  /** What else can be done about it. */
  action?: ReactNode;
}

/**
 * What is wrong, and what to do: of all that is refused or fails, on a page, in a dialog and in a corner. What is
 * wrong with one field stands at that field. Data that is there already stays on the page beside it.
 */
export function ErrorBanner({ error, what, onRetry, action }: Props) {
  const { message, requestId } = describeError(error);
  return (
    <Notice
      tone="danger"
      action={
        onRetry ? (
          <Button size="small" onClick={onRetry}>
            Try again
          </Button>
        ) : (
          action
        )
      }
    >
      <strong>{what}.</strong> {message}
      {requestId && (
        <>
          {" "}
          <span className={styles.request}>
            Request <code>{requestId}</code>
          </span>
        </>
      )}
    </Notice>
  );
}

/** A sentence that stands out, with a button at its end. */
export function Notice({
  tone,
  icon,
  action,
  children,
}: {
  tone: "neutral" | "warn" | "danger" | "ok";
  icon?: ReactNode;
  action?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className={cx(styles.banner, styles[tone])} role={tone === "danger" ? "alert" : undefined}>
      <span className={styles.icon}>{icon ?? <CircleAlert size={15} />}</span>
      <div className={styles.text}>{children}</div>
      {action && <div className={styles.action}>{action}</div>}
    </div>
  );
}
