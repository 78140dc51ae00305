import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { once } from "../platform/concurrency/once";
import type { Site, SiteFile } from "../platform/http/site";

/** The folder of the built dashboard (see dev/forge.mjs). */
const FOLDER = join(__dirname, "..", "dashboard");

const CONTENT_TYPES: Record<string, string> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/**
 * Allows only content of this origin. Forbids inline scripts, and code from strings (`eval`). Tests
 * check that the dashboard works under this policy.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types forge",
].join("; ");

/** The dashboard under /ui/; undefined if it was not built. */
export function dashboard(folder = FOLDER): Site | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const files = new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && extname(entry.name) in CONTENT_TYPES)
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1))
      .map((path) => [path, siteFile(folder, path)]),
  );
  const index = files.get("index.html");
  if (!index) return undefined;
  return { base: "/ui/", files, index, contentSecurityPolicy: CONTENT_SECURITY_POLICY };
}

function siteFile(folder: string, path: string): SiteFile {
  const at = join(folder, path);
  const bytes = (suffix: string): (() => Buffer) => once(() => readFileSync(`${at}${suffix}`));
  const identity = bytes("");
  return {
    contentType: CONTENT_TYPES[extname(path)] ?? "application/octet-stream",
    // Computed when the file is first requested, so that the server's start reads no files.
    etag: once(() => {
      const digest = createHash("sha256").update(identity()).digest("base64url").slice(0, 22);
      return `"${digest}"`;
    }),
    isImmutable: path.startsWith("assets/"),
    encodings: {
      identity,
      ...(existsSync(`${at}.br`) ? { br: bytes(".br") } : {}),
      ...(existsSync(`${at}.gz`) ? { gzip: bytes(".gz") } : {}),
    },
  };
}
