import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { Say } from "./say";

/** Where distributions put it. `CHROME_PATH` names another one. */
const PATHS = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The browser's program; undefined where there is none. */
export const chromiumPath = (): string | undefined =>
  [process.env.CHROME_PATH, ...PATHS].find((path) => path !== undefined && existsSync(path));

/** Installs Chromium with apt where it is missing and we may. Says what to do where it can't. */
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
    "There is no Chromium here, and it could not be installed: tests in a browser are left out. " +
      "Install it (apt-get install chromium), or set CHROME_PATH to the program.",
  );
}
