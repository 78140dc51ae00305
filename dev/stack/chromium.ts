import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { Say } from "./say";

/** A Chromium that never opens a window, which saves a third of its CPU time in the tests. */
const WITHOUT_WINDOWS = "/usr/bin/chromium-headless-shell";

/** Usual paths of the program, the preferred one first. `CHROME_PATH` overrides them. */
const PATHS = [
  WITHOUT_WINDOWS,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The path of the browser; undefined if there is none. */
export const chromiumPath = (): string | undefined =>
  [process.env.CHROME_PATH, ...PATHS].find((path) => path !== undefined && existsSync(path));

/**
 * Installs windowless Chromium with apt-get if it is missing, this process is root and CHROME_PATH
 * is not set. If no browser is found afterwards, says how to install one.
 */
export function ensureChromium(say: Say): void {
  const isChosen = process.env.CHROME_PATH !== undefined || existsSync(WITHOUT_WINDOWS);
  const isRoot = process.getuid?.() === 0;
  if (!isChosen && isRoot && existsSync("/usr/bin/apt-get")) {
    say("Installing Chromium with apt-get (about a minute) …");
    aptGet("update");
    // Some distributions don't have chromium-headless-shell, which is the smaller package.
    if (!install("chromium-headless-shell") && !chromiumPath()) install("chromium");
  }
  if (chromiumPath()) return;
  say(
    "Chromium is not installed; skipping the browser tests. Install it (apt-get install " +
      "chromium-headless-shell, or chromium), or set CHROME_PATH to the program.",
  );
}

const install = (name: string): boolean =>
  aptGet("install", "-y", "--no-install-recommends", name) === 0;

const aptGet = (...args: string[]): number | null =>
  spawnSync("apt-get", ["-qq", ...args], {
    stdio: "ignore",
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  }).status;
