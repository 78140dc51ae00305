import type { ReactNode } from "react";
import { cx } from "./cx";
import styles from "./tag.module.css";

export const Tag = ({ children }: { children: ReactNode }) => (
  <span className={styles.tag}>{children}</span>
);

/** Tags in one line that may be cut off, or with `wrap` in several lines. The tooltip lists all. */
export function Tags({ tags, wrap = false }: { tags: readonly string[]; wrap?: boolean }) {
  return (
    <span className={cx(styles.tags, wrap && styles.wrap)} title={tags.join(", ") || undefined}>
      {tags.map((tag) => (
        <Tag key={tag}>{tag}</Tag>
      ))}
    </span>
  );
}
