/** What this tab remembers until it is closed. Storage can be forbidden: then nothing, as after each reload. */
export function readFromTab(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** @returns whether it is remembered. */
export function writeToTab(name: string, value: string | undefined): boolean {
  try {
    if (value === undefined) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}
