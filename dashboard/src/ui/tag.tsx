import type { ReactNode } from "react";
import { cx } from "./cx";
import styles from "./tag.module.css";

export const Tag = ({ children }: { children: ReactNode }) => (
  <span className={styles.tag}>{children}</span>
);

/**
 * Shows tags in one line, which is cut off if it is too long. With `wrap`, the tags continue on the
 * next line instead. The tooltip lists all tags.
 */
export function Tags({ tags, wrap = false }: { tags: readonly string[]; wrap?: boolean }) {
  return (
    <span className={cx(styles.tags, wrap && styles.wrap)} title={tags.join(", ") || undefined}>
      {tags.map((tag) => (
        <Tag key={tag}>{tag}</Tag>
      ))}
    </span>
  );
}
