import { Tabs as Base } from "@base-ui/react/tabs";
import { type ReactNode, useLayoutEffect, useRef } from "react";
import styles from "./tabs.module.css";

interface Tab<T extends string> {
  id: T;
  title: string;
  /** A number in small type next to the title. */
  count?: number | undefined;
  content: ReactNode;
}

interface Props<T extends string> {
  tabs: readonly (Tab<T> | false)[];
  /** The chosen tab. Pages keep it in the URL, so that a link opens the same tab. */
  value: T;
  onChange: (tab: T) => void;
}

/** Mounts only the chosen tab. If the list of tabs is too wide, it scrolls to the chosen tab. */
export function Tabs<T extends string>({ tabs: all, value, onChange }: Props<T>) {
  const tabs = all.filter((tab) => tab !== false);
  const list = useRef<HTMLDivElement>(null);
  // Scrolls only the list of tabs. scrollIntoView would also scroll the page.
  useLayoutEffect(() => {
    const chosen = list.current?.querySelector<HTMLElement>(`[data-tab="${value}"]`);
    if (!list.current || !chosen) return;
    const end = chosen.offsetLeft - list.current.offsetLeft + chosen.offsetWidth;
    list.current.scrollLeft = Math.max(0, end - list.current.clientWidth);
  }, [value]);
  return (
    <Base.Root value={value} onValueChange={(tab) => onChange(tab as T)} className={styles.root}>
      <Base.List ref={list} className={styles.list} activateOnFocus={false}>
        {tabs.map((tab) => (
          <Base.Tab key={tab.id} value={tab.id} data-tab={tab.id} className={styles.tab}>
            {tab.title}
            {tab.count !== undefined && <span className={styles.count}>{tab.count}</span>}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map((tab) => (
        <Base.Panel key={tab.id} value={tab.id} className={styles.panel}>
          {tab.content}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}
