import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkoutRoot } from "../stack/paths";

/** By name of a lock (`requirements/<name>.txt`): the requirements that it pins, with hashes. */
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

/** What workers and users of the SDK install; the others are for development. */
export const RUNTIME_LOCKS: LockName[] = ["runtime", "train", "sdk"];

export interface LockedPackage {
  name: string;
  version: string;
  /** Where it is installed, as an environment marker; empty: everywhere. */
  marker: string;
  /** How many files of it are accepted. */
  hashes: number;
}

export const lockPath = (name: LockName): string =>
  join(checkoutRoot(), "requirements", `${name}.txt`);

/** The first line of a lock, by which a stale one is found without the network. */
export const lockHeader = (name: LockName): string =>
  `# Written by \`npm run lock:python\` from ${LOCKS[name]}, inputs ${inputDigest(LOCKS[name])}\n`;

/** Of a list of requirements and those that it refers to; comments don't count. */
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

/** `name==version ; marker \` with its `--hash=` lines, as pip and uv write them. */
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
 * Without PyTorch and the CUDA libraries that it asks for: where PyTorch's build for CPUs is installed already,
 * from an index of its own whose files have other hashes.
 */
export function withoutTorch(text: string): string {
  return text
    .split(/\n(?=\S)/)
    .filter((entry) => !/^(torch|triton|nvidia-(?!ml-py)[a-z0-9-]+|cuda-[a-z0-9-]+)==/.test(entry))
    .join("\n");
}
