import { type MouseEvent, type RefObject, useEffect, useState } from "react";
import { useHotkeys } from "./hotkeys";

interface Rows {
  count: number;
  body: RefObject<HTMLElement | null>;
  /** Scrolls a row into view. */
  show: (index: number) => void;
  open: (index: number) => void;
}

/** Moves between the rows of a list with `j` and `k`, and opens one with Enter or a click. */
export function useRowKeys({ count, body, show, open }: Rows) {
  const [active, setActive] = useState<number>();
  const isThere = active !== undefined && active < count;
  const move = (by: number): void => {
    if (count === 0) return;
    const next = active === undefined ? 0 : Math.min(count - 1, Math.max(0, active + by));
    setActive(next);
    show(next);
  };
  // Focuses the row in the next frame: it may be rendered only after the table has scrolled to it.
  useEffect(() => {
    if (active === undefined) return;
    const frame = requestAnimationFrame(() => {
      const row = body.current?.querySelector(`[data-index="${active}"]`);
      row?.querySelector<HTMLElement>("a, button")?.focus({ preventScroll: true });
    });
    return () => cancelAnimationFrame(frame);
  }, [active, body]);
  useHotkeys([
    { keys: "j", what: "Next row", run: () => move(1), repeats: true },
    { keys: "k", what: "Previous row", run: () => move(-1), repeats: true },
    {
      keys: "Enter",
      what: "Open the row",
      run: () => {
        if (isThere) open(active);
      },
    },
  ]);
  return {
    active: isThere ? active : undefined,
    onClick: (event: MouseEvent) => {
      const target = event.target as Element;
      // A click on a control, or a text selection, does not open the row.
      if (target.closest("a, button, input, label") || event.defaultPrevented) return;
      if (getSelection()?.toString()) return;
      const index = target.closest<HTMLElement>("[data-index]")?.dataset.index;
      if (index !== undefined) open(Number(index));
    },
  };
}
