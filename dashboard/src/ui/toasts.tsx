import { X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { IconButton } from "./button";
import { ErrorBanner } from "./error-banner";
import styles from "./toasts.module.css";

interface Toast {
  id: number;
  text: string;
  /** The cause of a failure; `text` says what failed. */
  error?: unknown;
}

/** How long a message is shown. An error stays until the user closes it. */
const SHOWN_MS = 5_000;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

const close = (id: number): void => set(toasts.filter((each) => each.id !== id));

function show(toast: Omit<Toast, "id">): void {
  lastId += 1;
  const id = lastId;
  set([...toasts.slice(-3), { id, ...toast }]);
  if (toast.error === undefined) setTimeout(() => close(id), SHOWN_MS);
}

/** Reports that an action succeeded, or why it failed. */
export const toast = {
  ok: (text: string): void => show({ text }),
  /** Shows an error. @param what says what failed, e.g. "The job was not retried". */
  refused: (what: string, error: unknown): void => show({ text: what, error }),
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className={styles.toasts} aria-live="polite" role="status">
      {shown.map((each) => (
        <One key={each.id} toast={each} />
      ))}
    </div>
  );
}

function One({ toast: { id, text, error } }: { toast: Toast }) {
  const end = (
    <IconButton size="small" label="Close" onClick={() => close(id)}>
      <X size={14} />
    </IconButton>
  );
  return error === undefined ? (
    <div className={styles.toast}>
      <span>{text}</span>
      {end}
    </div>
  ) : (
    <div className={styles.refused}>
      <ErrorBanner what={text} error={error} action={end} />
    </div>
  );
}
