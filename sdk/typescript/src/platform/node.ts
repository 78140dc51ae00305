import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Platform } from "./platform.ts";

/** Codes of fetch failures (`error.cause.code`) that occur before any byte is sent. */
const NOT_SENT = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
]);

export const platform: Platform = {
  env: process.env,
  readStackFile() {
    try {
      return readFileSync(join(process.env.FORGE_HOME || ".forge", "stack.json"), "utf8");
    } catch {
      return undefined;
    }
  },
  createHash() {
    const hash = createHash("sha256");
    return { update: (bytes) => void hash.update(bytes), hex: () => hash.digest("hex") };
  },
  streamsUploads: true,
  maxStreams: Number.POSITIVE_INFINITY,
  wasNotSent(error) {
    const { cause } = (error ?? {}) as { cause?: { code?: unknown; errors?: unknown[] } };
    // If the host has several addresses, `errors` has one error for each.
    const all = (cause?.errors ?? [cause]) as { code?: unknown }[];
    return all.length > 0 && all.every((each) => NOT_SENT.has(String(each?.code)));
  },
};
