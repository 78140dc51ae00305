import type { FocusEvent } from "react";

/**
 * The field that the focus has left. From then on, its problem may be shown. A move from an input to a button of the
 * same field doesn't count, nor does a move to the submit button: a message that appears now would move that button
 * away from the pointer, and submitting checks all fields anyway.
 */
export function leftField({ target, relatedTarget }: FocusEvent): HTMLElement | undefined {
  const field = target.closest<HTMLElement>("[data-field]");
  const isLeft =
    target.matches("input, textarea") &&
    !field?.contains(relatedTarget) &&
    !relatedTarget?.matches("[type=submit]");
  return (isLeft && field) || undefined;
}
