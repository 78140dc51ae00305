import type { ComponentProps, MouseEvent, ReactNode } from "react";
import styles from "./button.module.css";
import { cx } from "./cx";

export type ButtonKind = "primary" | "secondary" | "ghost" | "danger";

interface Props extends ComponentProps<"button"> {
  kind?: ButtonKind;
  size?: "small" | "medium";
  /** Ignores clicks while the action is pending. Unlike a disabled button, it keeps the focus. */
  busy?: boolean;
  icon?: ReactNode;
  hotkey?: string;
}

export function Button({
  kind = "secondary",
  size = "medium",
  busy = false,
  icon,
  hotkey,
  className,
  children,
  onClick,
  ...rest
}: Props) {
  return (
    <button
      type="button"
      {...rest}
      onClick={busy ? ignore : onClick}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      aria-keyshortcuts={hotkey}
      className={cx(styles.button, styles[kind], styles[size], className)}
    >
      {icon}
      {children}
      {hotkey && (
        <kbd className={styles.hotkey} aria-hidden="true">
          {hotkey}
        </kbd>
      )}
    </button>
  );
}

/** Ignores a click. In a form, this also prevents a second submission. */
const ignore = (event: MouseEvent): void => event.preventDefault();

export function IconButton({
  label,
  className,
  ...rest
}: Omit<Props, "icon" | "hotkey"> & { label: string }) {
  return (
    <Button
      kind="ghost"
      {...rest}
      aria-label={label}
      title={label}
      className={cx(styles.icon, className)}
    />
  );
}

/** The class names of a button, for a link that looks like one. */
export const buttonClass = (kind: ButtonKind = "secondary", size: "small" | "medium" = "medium") =>
  cx(styles.button, styles[kind], styles[size]);
