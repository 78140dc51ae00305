import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { Say } from "./say";

/** Usual paths of the program. `CHROME_PATH` overrides them. */
const PATHS = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The path of the browser; undefined if there is none. */
export const chromiumPath = (): string | undefined =>
  [process.env.CHROME_PATH, ...PATHS].find((path) => path !== undefined && existsSync(path));

/**
 * Installs a missing Chromium with apt-get if this process is root. Otherwise explains what to do.
 */
export function ensureChromium(say: Say): void {
  if (chromiumPath()) return;
  const isRoot = process.getuid?.() === 0;
  if (isRoot && existsSync("/usr/bin/apt-get")) {
    say("Installing Chromium with apt-get (about a minute) …");
    spawnSync("apt-get", ["update", "-qq"], { stdio: "ignore" });
    spawnSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium"], {
      stdio: "ignore",
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  }
  if (chromiumPath()) return;
  say(
    "Chromium is not installed; skipping the browser tests. Install it (apt-get install chromium), " +
      "or set CHROME_PATH to the program.",
  );
}
