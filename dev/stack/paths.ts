import { homedir } from "node:os";
import { join } from "node:path";

/** The checkout; this file runs from <checkout>/dist/dev/stack, or in tests from <checkout>/dev/stack. */
export function checkoutRoot(): string {
  const above = join(__dirname, "..", "..");
  return above.endsWith("/dist") ? join(above, "..") : above;
}

/** What is built or downloaded once for all checkouts. */
export function cacheDir(): string {
  const { FORGE_CACHE_DIR, XDG_CACHE_HOME } = process.env;
  return FORGE_CACHE_DIR ?? join(XDG_CACHE_HOME ?? join(homedir(), ".cache"), "forge");
}
