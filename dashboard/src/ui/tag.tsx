import type { ReactNode } from "react";
import styles from "./tag.module.css";

export const Tag = ({ children }: { children: ReactNode }) => (
  <span className={styles.tag}>{children}</span>
);

/** Tags in one line; those that don't fit are cut off, and all are in the tooltip. */
export function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <span className={styles.tags} title={tags.join(", ") || undefined}>
      {tags.map((tag) => (
        <Tag key={tag}>{tag}</Tag>
      ))}
    </span>
  );
}
