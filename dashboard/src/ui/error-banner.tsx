import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { describeError } from "../api/errors";
import { Button } from "./button";
import { cx } from "./cx";
import styles from "./error-banner.module.css";

interface Props {
  error: unknown;
  /** What failed, e.g. "The job could not be loaded". */
  what: string;
  onRetry?: () => void;
  /** Another action that may help. */
  action?: ReactNode;
}

/**
 * Says why a call failed and what to do. Used on pages, in dialogs and in toasts. An error that
 * concerns one field is shown at that field instead. Loaded data stays visible.
 */
export function ErrorBanner({ error, what, onRetry, action }: Props) {
  const { message, requestId } = describeError(error);
  return (
    <Notice
      tone="danger"
      action={
        onRetry ? (
          <Button size="small" onClick={() => onRetry()}>
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

export type Tone = "neutral" | "ok" | "warn" | "danger";

/** A highlighted sentence with a button at its end. */
export function Notice({
  tone,
  icon,
  action,
  children,
}: {
  tone: Tone;
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
