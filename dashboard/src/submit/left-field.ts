import type { FocusEvent } from "react";

/**
 * The field that the focus has left, and whose problem may now be shown. A move to a button of the
 * same field doesn't count, nor does one to the submit button: a message would move that button
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
