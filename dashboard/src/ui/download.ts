/** Saves bytes as a file, as a click on a download link does. */
export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  saveLink(url, name);
  // The browser has taken it over by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Saves what an address of this origin answers. */
export function saveLink(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}
