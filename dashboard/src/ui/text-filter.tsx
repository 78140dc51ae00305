import { useEffect, useRef, useState } from "react";
import { Input } from "./field";
import styles from "./text-filter.module.css";

interface Props {
  /** What the filter searches, e.g. "Filter by id, GPU or tag". */
  label: string;
  value: string;
  onChange: (text: string) => void;
}

/** The wait after the last key press, so that typing a word causes only one request. */
const PAUSE_MS = 200;

/** Filters a list while the user types. `/` focuses the field, Esc leaves it. */
export function TextFilter({ label, value, onChange }: Props) {
  const [text, setText] = useState(value);
  const reported = useRef(value);
  // The browser's back and forward buttons change the value from outside.
  useEffect(() => {
    if (value !== reported.current) setText(value);
    reported.current = value;
  }, [value]);
  useEffect(() => {
    if (text === reported.current) return;
    const timer = setTimeout(() => {
      reported.current = text;
      onChange(text);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  });
  return (
    <Input
      data-filter
      type="search"
      className={styles.filter}
      aria-label={label}
      placeholder={label}
      value={text}
      onChange={({ target }) => setText(target.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        // By default, Esc clears a search field. Keep the text.
        event.preventDefault();
        event.currentTarget.blur();
      }}
    />
  );
}
