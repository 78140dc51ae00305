import { useSigned } from "../api/context";
import styles from "./scope.module.css";

/** Whose things a page shows to an admin: everybody's, or those of the admin's own tenant. */
export type Shown = "all" | "own";

/** Says whose things these are. Nothing for a tenant's user, who sees only the tenant's. */
export function Scope({ of }: { of: Shown }) {
  const { session } = useSigned();
  if (session.scope !== "admin") return null;
  return (
    <span className={styles.scope}>
      {of === "all" ? "All tenants" : `Only tenant ${session.userId}`}
    </span>
  );
}
