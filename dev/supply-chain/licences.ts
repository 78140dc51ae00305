import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "../stack/paths";
import { parseLock, RUNTIME_LOCKS, readLock } from "./python-locks";

/**
 * SPDX identifiers of the licences that packages may have. MPL-2.0 is allowed because it applies
 * only to changes of the licensed files, and we change none.
 */
const ALLOWED = new Set([
  "0BSD",
  "Apache-2.0",
  "Apache-2.0 WITH LLVM-exception",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BSL-1.0",
  "CC0-1.0",
  "CNRI-Python",
  "ISC",
  "MIT",
  "MPL-2.0",
  "PSF-2.0",
  "Unlicense",
  "Zlib",
]);

/** CUDA: a dependency of PyTorch that GPU machines install themselves. We don't distribute it. */
const NVIDIA = { licence: "LicenseRef-NVIDIA-Proprietary", names: /^(nvidia|cuda)-/ };

/** Licences that are missing in package-lock.json. */
const NPM: Record<string, string> = {
  buildcheck: "MIT",
  "cpu-features": "MIT",
  ssh2: "MIT",
  unionfs: "Unlicense",
};

/** Browser data for webpack, a dependency of Temporal's worker. We distribute it unchanged. */
const NPM_EXCEPTIONS = new Set(["caniuse-lite CC-BY-4.0"]);

interface Licensed {
  name: string;
  version: string;
  licence: string | undefined;
}

/**
 * Whether an SPDX expression is allowed. In `A AND B`, both licences must be allowed. In `A OR B`,
 * one allowed licence is enough. The check ignores parentheses. It may therefore refuse a nested
 * expression that should pass, but it never accepts an expression that should fail.
 */
export const isAllowed = (expression: string): boolean =>
  expression
    .replaceAll(/[()]/g, "")
    .split(" AND ")
    .every((part) => part.split(" OR ").some((one) => ALLOWED.has(one.trim())));

/** The packages of a server installation, from package-lock.json. */
export function npmPackages(lockText: string): Licensed[] {
  const { packages } = JSON.parse(lockText) as {
    packages: Record<string, { version?: string; license?: string; dev?: boolean; link?: boolean }>;
  };
  return Object.entries(packages)
    .filter(([path, { dev, link }]) => path !== "" && !dev && !link)
    .map(([path, { version = "", license }]) => {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      return { name, version, licence: license ?? NPM[name] };
    });
}

/**
 * The packages of workers and the SDK, from the locks. Locks do not state licences, so the licences
 * are from requirements/licences.json.
 */
export function pythonPackages(): Licensed[] {
  const path = join(checkoutRoot(), "requirements", "licences.json");
  const licences = JSON.parse(readFileSync(path, "utf8")) as Record<string, string>;
  const packages = RUNTIME_LOCKS.flatMap((name) => parseLock(readLock(name)))
    // Leave out packages for Python in a browser: no worker runs there.
    .filter(({ marker }) => !marker.includes("sys_platform == 'emscripten'"))
    .map(({ name, version }) => ({ name, version, licence: licences[name] }));
  return [...new Map(packages.map((each) => [`${each.name} ${each.version}`, each])).values()];
}

/** One line per package whose licence is unknown or not allowed. */
export function licenceProblems(npm: Licensed[], python: Licensed[]): string[] {
  const problems: string[] = [];
  const judge = (kind: string, { name, version, licence }: Licensed, accepted: boolean): void => {
    if (accepted || (licence !== undefined && isAllowed(licence))) return;
    problems.push(`${kind} ${name} ${version}: ${licence ?? "its licence is not listed"}`);
  };
  for (const each of npm) {
    judge("npm", each, NPM_EXCEPTIONS.has(`${each.name} ${each.licence}`));
  }
  for (const each of python) {
    judge("Python", each, each.licence === NVIDIA.licence && NVIDIA.names.test(each.name));
  }
  return problems;
}
