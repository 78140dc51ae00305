import { useEffect, useRef, useState } from "react";
import { Input } from "../ui/field";
import styles from "./pipeline-filters.module.css";

/** So long nobody has typed before the list is asked again. */
const PAUSE_MS = 250;

/** Filters while one types; Esc leaves it. */
export function TextFilter({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (text: string) => void;
}) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // Back and forward, and "Clear", change it from outside.
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <Input
      data-filter
      type="search"
      className={styles.text}
      aria-label={label}
      placeholder={label}
      value={text}
      onChange={({ target }) => {
        setText(target.value);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => onChange(target.value.trim()), PAUSE_MS);
      }}
      onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
    />
  );
}
