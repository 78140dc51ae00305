import { useSigned } from "../api/context";
import styles from "./scope.module.css";

/** Whose data an admin sees: all tenants', or only the admin's own tenant's. */
export type Shown = "all" | "own";

/** Tells an admin whose data is shown. Other users see only their own tenant's data. */
export function Scope({ of }: { of: Shown }) {
  const { session } = useSigned();
  if (session.scope !== "admin") return null;
  return (
    <span className={styles.scope}>
      {of === "all" ? "All tenants" : `Only tenant ${session.userId}`}
    </span>
  );
}
