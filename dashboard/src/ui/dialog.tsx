import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import type { ReactNode } from "react";
import { Button, IconButton } from "./button";
import styles from "./dialog.module.css";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  /** Wide for forms with two columns, and for code. */
  wide?: boolean;
  children: ReactNode;
}

/** Focus stays inside, Esc closes it, and what was focused before is focused again. */
export function Dialog({ open, onClose, title, wide, children }: Props) {
  return (
    <Base.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={styles.backdrop} />
        <Base.Popup className={wide ? `${styles.popup} ${styles.wide}` : styles.popup}>
          <header className={styles.header}>
            <Base.Title className={styles.title}>{title}</Base.Title>
            <Base.Close render={<IconButton size="small" label="Close" />}>
              <X size={15} />
            </Base.Close>
          </header>
          <div className={styles.body}>{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

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
  busy?: boolean;
  onConfirm: () => void;
}

/** Asks before something that can't be undone. */
export function ConfirmDialog({ children, action, busy, onConfirm, ...rest }: ConfirmProps) {
  return (
    <Dialog {...rest}>
      <div className={styles.text}>{children}</div>
      <DialogActions>
        <Button onClick={rest.onClose}>Keep it</Button>
        <Button kind="danger" busy={busy ?? false} onClick={onConfirm}>
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
