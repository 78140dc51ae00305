/** The same text for the same value, in whichever order the fields of its objects came. */
export const canonicalJson = (value: unknown): string => JSON.stringify(value, inOrderOfNames);

function inOrderOfNames(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
