import { ChevronDown } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "./button";
import styles from "./choice-filter.module.css";
import { Menu, MenuToggle } from "./menu";

interface Props<T extends string> {
  title: string;
  chosen: readonly T[];
  options: readonly T[];
  onChange: (chosen: T[]) => void;
  /** Renders an option. Default: the option as text. */
  show?: (option: T) => ReactNode;
}

/** A filter with any number of chosen values. Without a chosen value, it matches all rows. */
export function ChoiceFilter<T extends string>({
  title,
  chosen,
  options,
  onChange,
  show = (option) => option,
}: Props<T>) {
  const toggle = (option: T, isChosen: boolean): void =>
    onChange(options.filter((each) => (each === option ? isChosen : chosen.includes(each))));
  return (
    <Menu
      align="start"
      trigger={
        <Button aria-label={`${title}: ${chosen.join(", ") || "all"}`}>
          {title}
          {chosen.length > 0 && <span className={styles.count}>{chosen.length}</span>}
          <ChevronDown size={14} />
        </Button>
      }
    >
      {options.map((option) => (
        <MenuToggle
          key={option}
          checked={chosen.includes(option)}
          onChange={(isChosen) => toggle(option, isChosen)}
        >
          <span className={styles.option}>{show(option)}</span>
        </MenuToggle>
      ))}
    </Menu>
  );
}
