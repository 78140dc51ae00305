/** Replaces passwords in URLs and the given secrets with `[redacted]`. */
export function redact(text: string, secrets: string[]): string {
  const redacted = text.replaceAll(/(\/\/)[^\s/@]+@/g, "$1[redacted]@");
  return (
    secrets
      .filter((secret) => secret !== "")
      // Longest first, because a secret may contain another one.
      .sort((a, b) => b.length - a.length)
      .reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), redacted)
  );
}
