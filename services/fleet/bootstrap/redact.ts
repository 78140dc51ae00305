const REDACTED = "[redacted]";
/** Replaces each character of a secret. A private-use character: normal text never contains it. */
const MASK = "\uE000";

/** Replaces passwords in URLs and the given secrets with `[redacted]`. */
export function redact(text: string, secrets: string[]): string {
  return mask(text, secrets)
    .replaceAll(/(\/\/)[^\s/@]+@/g, `$1${REDACTED}@`)
    .replaceAll(/\uE000+/g, REDACTED);
}

/**
 * Like `redact`, for a text that was cut at its end. The cut text may end with an incomplete
 * secret, or with an incomplete user name and password in a URL. `redact` would not recognize
 * these, so the characters that may belong to them are removed.
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
