import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { IconButton } from "./button";
import { copyText } from "./clipboard";
import styles from "./copy.module.css";
import { cx } from "./cx";

const SHOWN_MS = 1_500;

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const words = { idle: label, copied: "Copied", failed: "Copying is not allowed here" }[state];
  return (
    <IconButton
      size="small"
      label={words}
      className={styles.copy}
      onClick={async (event) => {
        event.preventDefault();
        event.stopPropagation();
        setState((await copyText(text)) ? "copied" : "failed");
      }}
    >
      {state === "copied" ? <Check size={13} /> : <Copy size={13} />}
    </IconButton>
  );
}

/** How many characters at an id's end are never cut: enough to tell ids in a list apart. */
const TAIL = 8;

/** An id in monospace. If it does not fit, its middle is cut. */
export const IdText = ({ id }: { id: string }) =>
  id.length <= TAIL ? (
    <code title={id}>{id}</code>
  ) : (
    <code className={styles.text} title={id}>
      {/* The whole id for screen readers. */}
      <span className={cx("visually-hidden", styles.whole)}>{id}</span>
      <span className={styles.start} aria-hidden="true">
        {id.slice(0, -TAIL)}
      </span>
      <span className={styles.end} aria-hidden="true">
        {id.slice(-TAIL)}
      </span>
    </code>
  );

/** An id with a button that copies it. */
export function Id({ id }: { id: string }) {
  return (
    <span className={styles.id}>
      <IdText id={id} />
      <CopyButton text={id} label={`Copy ${id}`} />
    </span>
  );
}

/** A command or a piece of code with a button that copies it. */
export function Snippet({ code, label = "Copy" }: { code: string; label?: string }) {
  return (
    <div className={styles.snippet}>
      {/* Focusable, so that the keyboard can scroll it sideways. */}
      <pre tabIndex={0}>{code}</pre>
      <CopyButton text={code} label={label} />
    </div>
  );
}
