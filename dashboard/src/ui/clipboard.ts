/** Copies a text. Works over plain HTTP too, where the browser has no clipboard API. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  // If a dialog is open, adds the textarea inside it: a dialog takes the focus back from elements
  // outside.
  (before?.closest("[role=dialog]") ?? document.body).append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } finally {
    area.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}
