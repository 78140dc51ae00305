/** Reads from sessionStorage. Null if there is no value, or the browser forbids storage. */
export function readFromTab(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** @returns whether the value was stored. */
export function writeToTab(name: string, value: string | undefined): boolean {
  try {
    if (value === undefined) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}
