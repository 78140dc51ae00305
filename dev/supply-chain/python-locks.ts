import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkoutRoot } from "../stack/paths";

/**
 * The requirements that each lock (`requirements/<name>.txt`) pins with hashes, by name of the
 * lock.
 */
export const LOCKS = {
  runtime: "agent/requirements-runtime.txt",
  train: "compute/requirements-train.txt",
  tests: "agent/requirements-dev.txt",
  sdk: "sdk/python/requirements.txt",
  terminal: "sdk/python/requirements-terminal.txt",
  contract: "test/contract/requirements.txt",
  build: "requirements/build.in",
  uv: "requirements/uv.in",
  audit: "requirements/audit.in",
} as const;

export type LockName = keyof typeof LOCKS;

export const LOCK_NAMES = Object.keys(LOCKS) as LockName[];

/** The locks for workers and users of the SDK. The others are for development. */
export const RUNTIME_LOCKS: LockName[] = ["runtime", "train", "sdk"];

export interface LockedPackage {
  name: string;
  version: string;
  /** Environment marker of the platforms that install the package; empty: all. */
  marker: string;
  /** Number of `--hash` entries, one for each file that pip accepts. */
  hashes: number;
}

export const lockPath = (name: LockName): string =>
  join(checkoutRoot(), "requirements", `${name}.txt`);

/**
 * The first line of a lock. It has a digest of the requirements, so that a check finds a stale lock
 * without network access.
 */
export const lockHeader = (name: LockName): string =>
  `# Written by \`npm run lock:python\` from ${LOCKS[name]}, inputs ${inputDigest(LOCKS[name])}\n`;

/** Digest of a list of requirements and the lists it includes, without comments. */
function inputDigest(file: string): string {
  const text = readFileSync(join(checkoutRoot(), file), "utf8").replaceAll(/^#.*\n/gm, "");
  const digest = createHash("sha256").update(text);
  for (const [, other = ""] of text.matchAll(/^-r (.+)$/gm)) {
    digest.update(inputDigest(join(dirname(file), other)));
  }
  return digest.digest("hex").slice(0, 16);
}

export const readLock = (name: LockName): string => {
  const path = lockPath(name);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
};

/**
 * Parses entries of the form `name==version ; marker \` with `--hash=` lines, as pip and uv write
 * them.
 */
export function parseLock(text: string): LockedPackage[] {
  const entries = text.replaceAll(/^#.*$/gm, "").split(/\n(?=\S)/);
  return entries
    .filter((entry) => entry.trim() !== "")
    .map((entry) => {
      const [line = "", ...hashes] = entry.trim().split(/\s*\\\n\s*/);
      const [pin = "", marker = ""] = line.split(" ; ", 2);
      const [name = "", version = ""] = pin.split("==", 2);
      const valid = hashes.filter((hash) => /^--hash=sha256:[0-9a-f]{64}$/.test(hash.trim()));
      return { name, version, marker, hashes: valid.length };
    });
}

/**
 * Removes PyTorch and its CUDA libraries from a lock. Used if PyTorch's CPU build is already
 * installed: that build comes from another index, and its hashes are not in the lock.
 */
export function withoutTorch(text: string): string {
  return text
    .split(/\n(?=\S)/)
    .filter((entry) => !/^(torch|triton|nvidia-(?!ml-py)[a-z0-9-]+|cuda-[a-z0-9-]+)==/.test(entry))
    .join("\n");
}
