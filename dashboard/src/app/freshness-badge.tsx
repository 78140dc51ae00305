import { useContext, useSyncExternalStore } from "react";
import { FreshnessContext } from "../api/freshness";
import { cx } from "../ui/cx";
import { useNow } from "../ui/ticker";
import styles from "./freshness-badge.module.css";

const STALE_S = 30;

/** Shows the age of the page's data, in amber if Forge has not answered for over STALE_S. */
export function FreshnessBadge() {
  const freshness = useContext(FreshnessContext);
  const lastMs = useSyncExternalStore(freshness.subscribe, freshness.get);
  const seconds = useNow((now) => Math.max(0, Math.floor((now - lastMs) / 1000)));
  const isStale = seconds > STALE_S;
  const age = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
  return (
    <span
      className={cx(styles.badge, isStale && styles.stale)}
      title={
        isStale
          ? "Forge does not answer. The page tries again by itself."
          : "The page updates by itself."
      }
    >
      <span className={styles.dot} aria-hidden="true" />
      <span className={styles.long}>{isStale ? "No answer for" : "Updated"}</span> {age}
      {!isStale && <span className={styles.long}> ago</span>}
      <span className="visually-hidden" role="status">
        {isStale ? "Forge does not answer" : ""}
      </span>
    </span>
  );
}
