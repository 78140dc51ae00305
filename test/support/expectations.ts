/**
 * The expected value, in JSON. For an object, only the named fields are compared; for a list, each
 * element. A text in angle brackets, such as `<time>`, matches every value of that kind. Variables
 * are written `${name}`.
 */
export type Expectation = unknown;

const KINDS: Record<string, (value: unknown) => boolean> = {
  "<any>": () => true,
  "<present>": (value) => value !== undefined && value !== null,
  "<absent>": (value) => value === undefined,
  "<text>": (value) => typeof value === "string" && value !== "",
  "<number>": (value) => typeof value === "number",
  "<time>": (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)),
  "<list>": (value) => Array.isArray(value),
};

/** Lists each place where the value differs from the expectation. */
export function differences(expected: Expectation, value: unknown, at = "it"): string[] {
  if (typeof expected === "string" && expected.startsWith("<") && expected.endsWith(">")) {
    const isKind = KINDS[expected];
    if (!isKind) throw new Error(`${expected} is not a kind of value`);
    return isKind(value) ? [] : [`${at} is ${inWords(value)}, not ${expected}`];
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(value) || value.length !== expected.length) {
      return [`${at} is ${inWords(value)}, not a list of ${expected.length}`];
    }
    return expected.flatMap((each, n) => differences(each, value[n], `${at}[${n}]`));
  }
  if (typeof expected === "object" && expected !== null) {
    if (typeof value !== "object" || value === null) return [`${at} is ${inWords(value)}`];
    const fields = value as Record<string, unknown>;
    return Object.entries(expected).flatMap(([name, each]) =>
      differences(each, fields[name], `${at}.${name}`),
    );
  }
  return Object.is(expected, value) ? [] : [`${at} is ${inWords(value)}, not ${inWords(expected)}`];
}

const inWords = (value: unknown): string => (JSON.stringify(value) ?? "not there").slice(0, 300);

/** Replaces `${name}` with the variable's value in every text. Unknown variables stay. */
export function filledIn<T>(template: T, variables: Record<string, string>): T {
  const text = JSON.stringify(template).replace(/\$\{(\w+)\}/g, (whole, name: string) =>
    JSON.stringify(variables[name] ?? whole).slice(1, -1),
  );
  return JSON.parse(text) as T;
}
