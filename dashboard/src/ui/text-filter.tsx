import { useEffect, useRef, useState } from "react";
import { Input } from "./field";
import styles from "./text-filter.module.css";

interface Props {
  /** What is looked for, e.g. "Filter by id, GPU or tag". */
  label: string;
  value: string;
  onChange: (text: string) => void;
}

/** After the last key, so that a word is one question to the server. */
const PAUSE_MS = 200;

/** Narrows a list while someone types. `/` leads here, Esc leads away. */
export function TextFilter({ label, value, onChange }: Props) {
  const [text, setText] = useState(value);
  const told = useRef(value);
  // Back and forward change the value from outside.
  useEffect(() => {
    if (value !== told.current) setText(value);
    told.current = value;
  }, [value]);
  useEffect(() => {
    if (text === told.current) return;
    const timer = setTimeout(() => {
      told.current = text;
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
        // The browser would clear the text.
        event.preventDefault();
        event.currentTarget.blur();
      }}
    />
  );
}
