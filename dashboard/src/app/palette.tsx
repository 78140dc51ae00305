import { Dialog as Base } from "@base-ui/react/dialog";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useId, useRef, useState } from "react";
import { describeError } from "../api/errors";
import { cx } from "../ui/cx";
import { NAV } from "./nav";
import styles from "./palette.module.css";
import { type Found, useFindId } from "./use-find-id";

/** Opens a page by its name, or any object by its id. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const hasGone = useRef(false);
  return (
    <Base.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={styles.backdrop} />
        <Base.Popup
          className={styles.popup}
          aria-label="Search"
          initialFocus={() => {
            hasGone.current = false;
            return true;
          }}
          // After a navigation, the focus does not return to the button that opened the dialog.
          finalFocus={() => !hasGone.current}
        >
          <Finder
            onClose={() => {
              hasGone.current = true;
              onClose();
            }}
          />
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

function Finder({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const listId = useId();
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const found = useFindId(text);
  const pages: Found[] = NAV.filter(({ title }) =>
    title.toLowerCase().includes(text.trim().toLowerCase()),
  ).map(({ to, title, key }) => ({ id: to, title, note: `g ${key}`, go: () => navigate({ to }) }));
  const items = [...found.items, ...pages];
  const at = Math.min(chosen, items.length - 1);
  const open = (item: Found | undefined): void => {
    if (!item) return;
    onClose();
    void item.go();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step !== undefined && items.length > 0) {
      event.preventDefault();
      setChosen((at + step + items.length) % items.length);
    }
    if (event.key === "Enter") open(items[at]);
  };
  return (
    <>
      <input
        className={styles.input}
        placeholder="Page, or the id of a job, worker, artifact, …"
        aria-label="Page or id"
        role="combobox"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={items[at] ? `${listId}-${at}` : undefined}
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id={listId} role="listbox" aria-label="Results" className={styles.list}>
        {items.map((item, index) => (
          <div
            key={item.id}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className={cx(styles.item, index === at && styles.chosen)}
            onMouseMove={() => setChosen(index)}
            onClick={() => open(item)}
          >
            <span className={styles.title}>{item.title}</span>
            <span className={styles.note}>{item.note}</span>
          </div>
        ))}
        {items.length === 0 && (
          <p className={styles.none}>
            {found.isLooking
              ? "Looking …"
              : found.error
                ? describeError(found.error).message
                : `Nothing here has the id or name “${text.trim()}”.`}
          </p>
        )}
      </div>
    </>
  );
}
