import { Button } from "./button";
import styles from "./load-more.module.css";

interface Props {
  list: { hasMore: boolean; loadMore: () => void; isLoadingMore: boolean };
  /** What there is more of, e.g. "older jobs". */
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
