import type { FocusEvent } from "react";

/**
 * Returns the field that has lost the focus: the form may now show the field's problem. Returns
 * undefined if the focus moved within the field, or to the submit button. A new message would move
 * the submit button away from the pointer, and submitting checks all fields anyway.
 */
export function fieldOnBlur({ target, relatedTarget }: FocusEvent): HTMLElement | undefined {
  const field = target.closest<HTMLElement>("[data-field]");
  const isLeft =
    target.matches("input, textarea") &&
    !field?.contains(relatedTarget) &&
    !relatedTarget?.matches("[type=submit]");
  return (isLeft && field) || undefined;
}
