import { ShieldAlert } from "lucide-react";
import { useState } from "react";
import { useSigned } from "../api/context";
import { readFromTab, writeToTab } from "../api/tab-storage";
import { Button } from "../ui/button";
import { Notice } from "../ui/error-banner";
import styles from "./admin-notice.module.css";

const SEEN = "forge.admin-notice";

/** Warns an admin once per session: with an admin key, a mistake can affect all tenants. */
export function AdminNotice() {
  const { session } = useSigned();
  const [isSeen, setSeen] = useState(() => readFromTab(SEEN) === session.keyId);
  if (session.scope !== "admin" || isSeen) return null;
  const close = (): void => {
    writeToTab(SEEN, session.keyId);
    setSeen(true);
  };
  return (
    <div className={styles.notice}>
      <Notice
        tone="warn"
        icon={<ShieldAlert size={15} />}
        action={
          <Button size="small" onClick={close}>
            Understood
          </Button>
        }
      >
        <strong>You are signed in with an admin key.</strong> You see and change what all tenants
        have. For your own jobs, sign in with a user key.
      </Notice>
    </div>
  );
}
