import { useQuery } from "@tanstack/react-query";
import { Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { Menu as MenuIcon, Search } from "lucide-react";
import { useEffect, useState } from "react";
import { useForge } from "../api/context";
import { Button, IconButton } from "../ui/button";
import { useHotkeys } from "../ui/hotkeys";
import { ScrollMain } from "../ui/scroll-area";
import { AdminNotice } from "./admin-notice";
import { FreshnessBadge } from "./freshness-badge";
import { Help } from "./help";
import { NAV } from "./nav";
import { Palette } from "./palette";
import styles from "./shell.module.css";
import { Sidebar } from "./sidebar";
import { TenantMenu } from "./tenant-menu";

/** How often each page pings Forge, to show whether Forge answers and the key still works. */
const PING_MS = 10_000;

/** The layout around every page. */
export function Shell() {
  const forge = useForge();
  const navigate = useNavigate();
  const [overlay, setOverlay] = useState<"palette" | "help" | "nav">();
  const close = (): void => setOverlay(undefined);
  const path = useLocation({ select: ({ pathname }) => pathname });
  // Closes the overlay when the page changes, for example by the browser's back button.
  useEffect(() => {
    if (path) setOverlay(undefined);
  }, [path]);
  useQuery({
    queryKey: ["ping"],
    queryFn: ({ signal }) => forge.service.ping({ signal }),
    refetchInterval: PING_MS,
  });
  useHotkeys([
    { keys: "mod+k", what: "Go to anything", run: () => setOverlay("palette") },
    { keys: "?", what: "Show all keys", run: () => setOverlay("help") },
    { keys: "/", what: "Filter the list", run: focusFilter },
    ...NAV.map(({ to, title, key }) => ({
      keys: `g ${key}`,
      what: title,
      run: () => void navigate({ to }),
    })),
  ]);
  return (
    <div className={styles.shell}>
      <a href="#main" className={styles.skip}>
        Skip to the page
      </a>
      <Sidebar isOpen={overlay === "nav"} onClose={close} onHelp={() => setOverlay("help")} />
      <div className={styles.column}>
        <header className={styles.bar}>
          <IconButton
            className={styles.menu}
            label="Open the menu"
            onClick={() => setOverlay("nav")}
          >
            <MenuIcon size={18} />
          </IconButton>
          <Button
            className={styles.search}
            onClick={() => setOverlay("palette")}
            aria-keyshortcuts="Control+K Meta+K"
          >
            <Search size={14} />
            <span>Search or paste an id</span>
            <kbd aria-hidden="true" data-keys={IS_MAC ? "⌘K" : "Ctrl K"} />
          </Button>
          <FreshnessBadge />
          <TenantMenu />
        </header>
        <ScrollMain className={styles.main}>
          <AdminNotice />
          <Outlet />
        </ScrollMain>
      </div>
      <Palette open={overlay === "palette"} onClose={close} />
      <Help open={overlay === "help"} onClose={close} />
    </div>
  );
}

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);

function focusFilter(): void {
  document.querySelector<HTMLElement>("[data-filter]")?.focus();
}
