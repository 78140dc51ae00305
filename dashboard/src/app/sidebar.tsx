import { Link } from "@tanstack/react-router";
import { BookOpen, Keyboard } from "lucide-react";
import { useEffect, useRef } from "react";
import { cx } from "../ui/cx";
import { Logo } from "./logo";
import { NAV } from "./nav";
import styles from "./sidebar.module.css";

interface Props {
  /** In a narrow window, the sidebar is shown only if this is set, and covers the page. */
  isOpen: boolean;
  onClose: () => void;
  onHelp: () => void;
}

export function Sidebar({ isOpen, onClose, onHelp }: Props) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    nav.current?.querySelector("a")?.focus();
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape") onClose();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [isOpen, onClose]);
  return (
    <>
      {isOpen && (
        <button
          type="button"
          className={styles.backdrop}
          aria-label="Close the menu"
          onClick={onClose}
        />
      )}
      <aside className={cx(styles.sidebar, isOpen && styles.open)}>
        <div className={styles.top}>
          <Logo />
        </div>
        <nav ref={nav} aria-label="Pages" className={styles.nav}>
          {NAV.map(({ to, title, icon: Icon }) => (
            <Link
              key={to}
              to={to}
              className={styles.item}
              activeProps={{ className: styles.active ?? "" }}
              activeOptions={{ includeSearch: false, exact: to === "/" }}
              onClick={onClose}
            >
              <Icon size={16} />
              {title}
            </Link>
          ))}
        </nav>
        <div className={styles.bottom}>
          <a className={styles.item} href="/docs/" target="_blank" rel="noreferrer">
            <BookOpen size={16} />
            API reference
          </a>
          <button type="button" className={styles.item} aria-keyshortcuts="?" onClick={onHelp}>
            <Keyboard size={16} />
            Shortcuts
            <kbd>?</kbd>
          </button>
        </div>
      </aside>
    </>
  );
}
