import { homedir } from "node:os";
import { join } from "node:path";

/**
 * The root of the checkout. This file runs in <checkout>/dist/dev/stack, or in tests in
 * <checkout>/dev/stack.
 */
export function checkoutRoot(): string {
  const above = join(__dirname, "..", "..");
  return above.endsWith("/dist") ? join(above, "..") : above;
}

/** Directory of builds and downloads that all checkouts share. */
export function cacheDir(): string {
  const { FORGE_CACHE_DIR, XDG_CACHE_HOME } = process.env;
  return FORGE_CACHE_DIR ?? join(XDG_CACHE_HOME ?? join(homedir(), ".cache"), "forge");
}
