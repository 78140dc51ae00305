import { ChevronDown, LogOut } from "lucide-react";
import { useSigned } from "../api/context";
import { Button } from "../ui/button";
import { Menu, MenuChoice, MenuItem, MenuSeparator, MenuText } from "../ui/menu";
import styles from "./tenant-menu.module.css";
import { setTheme, useTheme } from "./theme";

const THEMES = [
  { value: "system", text: "As the system" },
  { value: "light", text: "Light" },
  { value: "dark", text: "Dark" },
] as const;

export function TenantMenu() {
  const { session, sessions } = useSigned();
  const theme = useTheme();
  return (
    <Menu
      trigger={
        <Button kind="ghost" className={styles.trigger} aria-label={`Tenant ${session.userId}`}>
          <span
            className={styles.initial}
            aria-hidden="true"
            data-initial={session.userId.replace(/^usr_/, "").charAt(0).toUpperCase()}
          />
          <span className={styles.name}>{session.userId}</span>
          <ChevronDown size={14} />
        </Button>
      }
    >
      <MenuText>
        {session.scope === "admin"
          ? "Signed in with an admin key: it sees and changes all tenants."
          : "Signed in with a user key."}
      </MenuText>
      <MenuSeparator />
      <MenuText>Theme</MenuText>
      <MenuChoice label="Theme" value={theme} options={THEMES} onChange={setTheme} />
      <MenuSeparator />
      <MenuItem icon={<LogOut size={14} />} onClick={() => sessions.signOut()}>
        Sign out
      </MenuItem>
    </Menu>
  );
}
