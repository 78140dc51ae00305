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
  /** Wide for forms with two columns, and for code. */
  wide?: boolean;
  /** What it shows is not shown again: Esc, or a click outside it, does not close it. */
  stays?: boolean;
  children: ReactNode;
}

/**
 * The first field has the focus, or the first button: of a question that is the safe answer. Focus stays inside, Esc
 * closes it, and what was focused before is focused again.
 */
export function Dialog({ open, onClose, title, wide, stays = false, children }: Props) {
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
        if (!isOpen && !(stays && SLIPS.includes(reason))) onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className={styles.backdrop} />
        <Base.Popup
          className={wide ? `${styles.popup} ${styles.wide}` : styles.popup}
          initialFocus={(how) => {
            opener.current = document.activeElement;
            // A finger wants no keyboard on the screen before it has asked for one.
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

/** What closes a dialog by mistake. */
const SLIPS: readonly string[] = ["escape-key", "outside-press"];

const FIELDS =
  "input:not([type=hidden], :disabled), select:not(:disabled), textarea:not(:disabled)";
const BUTTONS = "button:not(:disabled), a[href]";

/** The opener, unless what was done has taken it away: then the page, so that Tab goes on from its beginning. */
const focusAfter = (opener: Element | null): HTMLElement | null =>
  opener instanceof HTMLElement && opener !== document.body && opener.isConnected
    ? opener
    : document.getElementById("main");

/** The buttons at a dialog's end, the one that does it last. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}

interface ConfirmProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** What will happen. */
  children: ReactNode;
  action: string;
  /** What is done. Where it is refused the dialog stays open, and says why. */
  change: { isPending: boolean; error: unknown; reset: () => void };
  /** What was not done then, e.g. "The job was not cancelled". */
  refused: string;
  /** @param close for when it is done. */
  onConfirm: (close: () => void) => void;
}

/** Asks before something that can't be undone. */
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
