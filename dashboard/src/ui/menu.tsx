import { Menu as Base } from "@base-ui/react/menu";
import { Check } from "lucide-react";
import type { ReactElement, ReactNode } from "react";
import styles from "./menu.module.css";

interface Props {
  trigger: ReactElement;
  children: ReactNode;
  align?: "start" | "end";
}

export function Menu({ trigger, children, align = "end" }: Props) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner className={styles.positioner} align={align} sideOffset={6}>
          <Base.Popup className={styles.popup}>{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

interface ItemProps {
  children: ReactNode;
  icon?: ReactNode;
  danger?: boolean;
  disabled?: boolean;
  onClick: () => void;
}

export function MenuItem({ children, icon, danger, disabled = false, onClick }: ItemProps) {
  return (
    <Base.Item
      className={danger ? `${styles.item} ${styles.danger}` : styles.item}
      disabled={disabled}
      onClick={onClick}
    >
      <span className={styles.icon}>{icon}</span>
      {children}
    </Base.Item>
  );
}

/** Menu items of which exactly one is chosen. */
export function MenuChoice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly { value: T; text: string }[];
  onChange: (value: T) => void;
}) {
  return (
    <Base.RadioGroup value={value} onValueChange={(next) => onChange(next as T)} aria-label={label}>
      {options.map((option) => (
        <Base.RadioItem key={option.value} value={option.value} className={styles.item}>
          <span className={styles.icon}>
            <Base.RadioItemIndicator>
              <Check size={14} />
            </Base.RadioItemIndicator>
          </span>
          {option.text}
        </Base.RadioItem>
      ))}
    </Base.RadioGroup>
  );
}

/** A menu item that can be checked. The menu stays open on a click. */
export function MenuToggle({
  children,
  checked,
  onChange,
}: {
  children: ReactNode;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <Base.CheckboxItem
      className={styles.item}
      checked={checked}
      onCheckedChange={onChange}
      closeOnClick={false}
    >
      <span className={styles.icon}>
        <Base.CheckboxItemIndicator>
          <Check size={14} />
        </Base.CheckboxItemIndicator>
      </span>
      {children}
    </Base.CheckboxItem>
  );
}

export const MenuSeparator = () => <Base.Separator className={styles.separator} />;

export function MenuText({ children }: { children: ReactNode }) {
  return <div className={styles.text}>{children}</div>;
}
