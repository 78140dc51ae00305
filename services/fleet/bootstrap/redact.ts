const REDACTED = "[redacted]";
/** Stands for one character of a secret. No text of a machine contains it (a private use code). */
const MASK = "\uE000";

/** Replaces passwords in URLs and the given secrets with `[redacted]`. */
export function redact(text: string, secrets: string[]): string {
  return mask(text, secrets)
    .replaceAll(/(\/\/)[^\s/@]+@/g, `$1${REDACTED}@`)
    .replaceAll(/\uE000+/g, REDACTED);
}

/**
 * The same for a text whose end was cut off. Removes an end that may be the beginning of a secret,
 * or of a user name and password in a URL.
 */
export function redactCut(text: string, secrets: string[]): string {
  const longest = Math.max(1, ...secrets.map(({ length }) => length));
  const certain = mask(text, secrets).slice(0, Math.max(0, text.length - longest + 1));
  return redact(certain.replace(/\/\/[^\s/@]*$/, "//"), []);
}

/** Replaces each character of the secrets, so that the text keeps its length. */
const mask = (text: string, secrets: string[]): string =>
  secrets
    .filter((secret) => secret !== "")
    // Longest first, because a secret may contain another one.
    .sort((a, b) => b.length - a.length)
    .reduce((rest, secret) => rest.replaceAll(secret, MASK.repeat(secret.length)), text);
