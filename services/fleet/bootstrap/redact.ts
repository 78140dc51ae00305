/** Passwords in URLs, and the given secrets, blotted out. */
export function redact(text: string, secrets: string[]): string {
  const blotted = text.replaceAll(/(\/\/)[^\s/@]+@/g, "$1[redacted]@");
  return (
    secrets
      .filter((secret) => secret !== "")
      // Of two that begin alike, the longer one first.
      .sort((a, b) => b.length - a.length)
      .reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), blotted)
  );
}
