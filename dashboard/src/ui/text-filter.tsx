import { Input } from "./field";
import styles from "./text-filter.module.css";

interface Props {
  /** What is looked for, e.g. "Filter by id, GPU or tag". */
  label: string;
  value: string;
  onChange: (text: string) => void;
}

/** Narrows a list while someone types. `/` leads here, Esc leads away. */
export const TextFilter = ({ label, value, onChange }: Props) => (
  <Input
    data-filter
    type="search"
    className={styles.filter}
    aria-label={label}
    placeholder={label}
    value={value}
    onChange={({ target }) => onChange(target.value)}
    onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
  />
);
