import type { FocusEvent } from "react";

/**
 * The field that the focus has left: from then on it may say what is wrong with it. From an input to the button
 * beside it is not out of the field yet. The button that submits looks at all fields itself; a message that appeared
 * now would move it from under the pointer.
 */
export function leftField({ target, relatedTarget }: FocusEvent): HTMLElement | undefined {
  const field = target.closest<HTMLElement>("[data-field]");
  const isLeft =
    target.matches("input, textarea") &&
    !field?.contains(relatedTarget) &&
    !relatedTarget?.matches("[type=submit]");
  return (isLeft && field) || undefined;
}
