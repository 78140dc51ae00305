import type { FocusEvent } from "react";

/**
 * The field that the focus has left. Its problem may now be shown. Undefined if the focus moved to
 * a button of the same field, or to the submit button: a new message would move the submit button
 * away from the pointer, and submitting checks all fields anyway.
 */
export function fieldOnBlur({ target, relatedTarget }: FocusEvent): HTMLElement | undefined {
  const field = target.closest<HTMLElement>("[data-field]");
  const isLeft =
    target.matches("input, textarea") &&
    !field?.contains(relatedTarget) &&
    !relatedTarget?.matches("[type=submit]");
  return (isLeft && field) || undefined;
}
