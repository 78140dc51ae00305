const HEX = "[0-9A-Fa-f]";
const NEXT = `%[89AaBb]${HEX}`;

/** A percent-encoded UTF-8 character. Encoded dots, slashes, backslashes and NUL are excluded. */
const ESCAPED = [
  `%(?!2[EeFf]|5[Cc]|00)[0-7]${HEX}`,
  `%(?:[Cc][2-9A-Fa-f]|[Dd]${HEX})${NEXT}`,
  `%[Ee](?:0%[AaBb]${HEX}|[1-9A-Ca-cEeFf]${NEXT}|[Dd]%[89]${HEX})${NEXT}`,
  `%[Ff](?:0%[9AaBb]${HEX}|[1-3]${NEXT}|4%8${HEX})${NEXT}${NEXT}`,
].join("|");

/** One segment of a key, except `.` and `..`. */
export const URI_SEGMENT = String.raw`(?!\.{1,2}(?:/|$))(?:[^/?#%\\\x00-\x1f\x7f]|${ESCAPED})+`;

/** URI of an object or a folder in an object store. */
export const DATASET_URI = new RegExp(
  `^(?:s3|spaces|forge)://[A-Za-z0-9][A-Za-z0-9._-]*(?:/+${URI_SEGMENT})+/?$`,
);
