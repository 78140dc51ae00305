import type { FocusEvent } from "react";

/**
 * The field that the focus has left, so that its problem may be shown. Undefined if the focus moved
 * within the field, or to the submit button. A new message would move that button away from the
 * pointer, and submitting checks all fields anyway.
 */
export function fieldOnBlur({ target, relatedTarget }: FocusEvent): HTMLElement | undefined {
  const field = target.closest<HTMLElement>("[data-field]");
  const isLeft =
    target.matches("input, textarea") &&
    !field?.contains(relatedTarget) &&
    !relatedTarget?.matches("[type=submit]");
  return (isLeft && field) || undefined;
}
