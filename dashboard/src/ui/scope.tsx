import { useSigned } from "../api/context";
import styles from "./scope.module.css";

/** The data that an admin sees: of all tenants, or only of the admin's own tenant. */
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
