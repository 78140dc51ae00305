import { X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { IconButton } from "./button";
import { cx } from "./cx";
import styles from "./toasts.module.css";

interface Toast {
  id: number;
  tone: "ok" | "danger";
  text: string;
}

/** Long enough to read; what failed stays until it is closed. */
const SHOWN_MS = 5_000;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

const close = (id: number): void => set(toasts.filter((each) => each.id !== id));

function show(tone: Toast["tone"], text: string): void {
  lastId += 1;
  const id = lastId;
  set([...toasts.slice(-3), { id, tone, text }]);
  if (tone === "ok") setTimeout(() => close(id), SHOWN_MS);
}

/** Says that something was done, or why it was not. */
export const toast = {
  ok: (text: string): void => show("ok", text),
  error: (text: string): void => show("danger", text),
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className={styles.toasts} aria-live="polite" role="status">
      {shown.map(({ id, tone, text }) => (
        <div key={id} className={cx(styles.toast, styles[tone])}>
          <span>{text}</span>
          <IconButton size="small" label="Close" onClick={() => close(id)}>
            <X size={14} />
          </IconButton>
        </div>
      ))}
    </div>
  );
}
