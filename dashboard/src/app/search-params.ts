type Values = Record<string, string | string[]>;

/** Reads the query as strings. A repeated name becomes a list. Each page validates its values. */
export function parseSearch(query: string): Values {
  // An object without a prototype, so that a parameter may have a name such as `constructor`.
  const values: Values = Object.create(null);
  for (const [name, value] of new URLSearchParams(query)) {
    const before = values[name];
    values[name] = before === undefined ? value : [before, value].flat();
  }
  return values;
}

/** Writes a short, readable query, e.g. `?status=running&status=failed`. */
export function stringifySearch(search: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const each of [value].flat()) {
      if (each != null && each !== "") query.append(name, String(each));
    }
  }
  const text = query.toString();
  return text && `?${text}`;
}

export type Search = Record<string, unknown>;

export function readText(search: Search, name: string): string | undefined {
  const value = [search[name]].flat()[0];
  return value == null || value === "" ? undefined : String(value);
}

export const readList = (search: Search, name: string): string[] =>
  [search[name]]
    .flat()
    .filter((each) => each != null && each !== "")
    .map(String);

/** Returns the parameter's value if it is one of the known values, otherwise undefined. */
export function readOneOf<T extends string>(
  search: Search,
  name: string,
  known: readonly T[],
): T | undefined {
  const text = readText(search, name);
  return known.find((each) => each === text);
}

export const readSomeOf = <T extends string>(
  search: Search,
  name: string,
  known: readonly T[],
): T[] => {
  const given = readList(search, name);
  return known.filter((each) => given.includes(each));
};

/** Drops undefined values and empty lists, so that they are not in the URL. */
export function given<T extends object>(values: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const entries = Object.entries(values).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(entries) as { [K in keyof T]?: NonNullable<T[K]> };
}
