import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { Button, IconButton } from "./button";
import styles from "./dialog.module.css";
import { ErrorBanner } from "./error-banner";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  /** Makes the dialog wider, for forms with two columns and for code. */
  wide?: boolean;
  /** Esc and clicks outside do not close the dialog. Set this for content shown only once. */
  ignoresAccidentalClose?: boolean;
  children: ReactNode;
}

/**
 * On opening, focuses the first field. Without fields, focuses the first button, which is the safe
 * choice in a confirmation. Tab stays inside the dialog. Esc closes the dialog, unless
 * `ignoresAccidentalClose` is set. On closing, returns the focus to the element that opened the
 * dialog.
 */
export function Dialog({
  open,
  onClose,
  title,
  wide,
  ignoresAccidentalClose = false,
  children,
}: Props) {
  const body = useRef<HTMLDivElement>(null);
  const opener = useRef<Element>(null);
  const first = (): HTMLElement | null =>
    body.current?.querySelector<HTMLElement>(FIELDS) ??
    body.current?.querySelector<HTMLElement>(BUTTONS) ??
    null;
  return (
    <Base.Root
      open={open}
      onOpenChange={(isOpen, { reason }) => {
        if (!isOpen && !(ignoresAccidentalClose && ACCIDENTAL.includes(reason))) onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className={styles.backdrop} />
        <Base.Popup
          className={wide ? `${styles.popup} ${styles.wide}` : styles.popup}
          initialFocus={(how) => {
            opener.current = document.activeElement;
            // After a touch, does not focus a field: the on-screen keyboard would appear.
            return how === "touch" || first();
          }}
          finalFocus={() => focusAfter(opener.current)}
        >
          <header className={styles.header}>
            <Base.Title className={styles.title}>{title}</Base.Title>
            <Base.Close render={<IconButton size="small" label="Close" />}>
              <X size={15} />
            </Base.Close>
          </header>
          <div ref={body} className={styles.body}>
            {children}
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

/**
 * Ways to close a dialog that often happen by mistake. A dialog with `ignoresAccidentalClose`
 * ignores them.
 */
const ACCIDENTAL: readonly string[] = ["escape-key", "outside-press"];

const FIELDS =
  "input:not([type=hidden], :disabled), select:not(:disabled), textarea:not(:disabled)";
const BUTTONS = "button:not(:disabled), a[href]";

/**
 * Where the focus returns after a dialog: to the element that opened it. If the dialog's action has
 * removed that element, the focus goes to the page's main part, so that Tab starts there.
 */
const focusAfter = (opener: Element | null): HTMLElement | null =>
  opener instanceof HTMLElement && opener !== document.body && opener.isConnected
    ? opener
    : document.getElementById("main");

/** The buttons at the end of a dialog; the last one confirms. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}

interface FormProps {
  onSubmit: () => void;
  onCancel: () => void;
  /** The text of the button that submits. */
  action: string;
  busy: boolean;
  disabled?: boolean;
  noValidate?: boolean;
  /** A button before the others. */
  other?: ReactNode;
  children: ReactNode;
}

/** A form in a dialog, with its buttons. */
export function DialogForm({ onSubmit, onCancel, action, busy, disabled, ...props }: FormProps) {
  return (
    <form
      className={styles.form}
      noValidate={props.noValidate}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {props.children}
      <DialogActions>
        {props.other}
        <Button onClick={onCancel}>Cancel</Button>
        <Button kind="primary" type="submit" busy={busy} disabled={disabled}>
          {action}
        </Button>
      </DialogActions>
    </form>
  );
}

interface ConfirmProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** What will happen. */
  children: ReactNode;
  action: string;
  /** The mutation that `onConfirm` runs. If it fails, the dialog stays open and shows why. */
  change: { isPending: boolean; error: unknown; reset: () => void };
  /** The title of the error, e.g. "The job was not cancelled". */
  refused: string;
  /** @param close closes the dialog; call it on success. */
  onConfirm: (close: () => void) => void;
}

/** Asks for confirmation of an action that can't be undone. */
export function ConfirmDialog({
  open,
  onClose,
  title,
  children,
  action,
  change,
  refused,
  onConfirm,
}: ConfirmProps) {
  const close = (): void => {
    onClose();
    change.reset();
  };
  return (
    <Dialog open={open} onClose={close} title={title}>
      <div className={styles.text}>{children}</div>
      {change.error != null && <ErrorBanner what={refused} error={change.error} />}
      <DialogActions>
        <Button onClick={close}>Keep it</Button>
        <Button kind="danger" busy={change.isPending} onClick={() => onConfirm(close)}>
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
