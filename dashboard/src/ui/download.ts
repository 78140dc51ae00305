/** Saves bytes as a file, like a click on a download link. */
export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  saveLink(url, name);
  // Revokes the URL later, because the browser may still read the blob after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Saves the response of a URL of this origin. */
export function saveLink(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}
