import { Button } from "./button";
import styles from "./load-more.module.css";

interface Props {
  list: { hasMore: boolean; loadMore: () => void; isLoadingMore: boolean };
  /** The name of the rows to load, e.g. "older jobs". */
  what: string;
}

export function LoadMore({ list, what }: Props) {
  if (!list.hasMore) return null;
  return (
    <Button className={styles.more} busy={list.isLoadingMore} onClick={list.loadMore}>
      {list.isLoadingMore ? "Loading …" : `Load ${what}`}
    </Button>
  );
}
