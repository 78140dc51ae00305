import { type KeyboardEvent, type PointerEvent, useState } from "react";

/** The columns where a selection begins and ends. `end` may be less than `anchor`. */
type Span = readonly [anchor: number, end: number];

/**
 * Selects columns of a chart. A click selects one column, dragging selects several. Arrow keys move
 * the selection, Shift with an arrow key extends it, and Enter confirms it.
 *
 * @param onSpan receives the first and the last column of a confirmed selection.
 */
export function useSpan(count: number, onSpan: (first: number, last: number) => void) {
  const [span, setSpan] = useState<Span>();
  const [isDragging, setDragging] = useState(false);

  const columnAt = ({ currentTarget, clientX }: PointerEvent): number => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return within(Math.floor(((clientX - left) / width) * count), count);
  };
  const choose = ([anchor, end]: Span): void => {
    setSpan(undefined);
    onSpan(Math.min(anchor, end), Math.max(anchor, end));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape") setSpan(undefined);
    if (event.key === "Enter" && span) {
      event.preventDefault();
      choose(span);
    }
    const to = {
      ArrowLeft: (span?.[1] ?? count) - 1,
      ArrowRight: (span?.[1] ?? -1) + 1,
      Home: 0,
      End: count - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const end = within(to, count);
    setSpan([event.shiftKey && span ? span[0] : end, end]);
  };
  return {
    chosen: span && { first: Math.min(...span), last: Math.max(...span) },
    handlers: {
      onKeyDown,
      onBlur: () => setSpan(undefined),
      onPointerDown: (event: PointerEvent) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setDragging(true);
        setSpan([columnAt(event), columnAt(event)]);
      },
      onPointerMove: (event: PointerEvent) => {
        if (isDragging && span) setSpan([span[0], columnAt(event)]);
      },
      onPointerUp: () => {
        setDragging(false);
        if (isDragging && span) choose(span);
      },
      onPointerCancel: () => {
        setDragging(false);
        setSpan(undefined);
      },
    },
  };
}

const within = (at: number, count: number): number => Math.max(0, Math.min(count - 1, at));
