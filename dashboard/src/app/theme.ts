import { useSyncExternalStore } from "react";

export type ThemeChoice = "system" | "light" | "dark";

/** The name of the stored choice. public/theme.js reads the choice before the first paint. */
const STORED = "forge.theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function stored(): ThemeChoice {
  try {
    const choice = localStorage.getItem(STORED);
    return choice === "light" || choice === "dark" ? choice : "system";
  } catch {
    return "system";
  }
}

let choice = stored();

function apply(): void {
  const isDark = choice === "dark" || (choice === "system" && systemIsDark.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  const color = isDark ? "#0e1116" : "#ffffff";
  document.querySelector('meta[name="theme-color"]')?.setAttribute("content", color);
}

systemIsDark.addEventListener("change", apply);

export function setTheme(next: ThemeChoice): void {
  choice = next;
  try {
    if (next === "system") localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, next);
  } catch {
    // The browser forbids storage, so the choice lasts until the next reload.
  }
  apply();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useTheme = (): ThemeChoice => useSyncExternalStore(subscribe, () => choice);
