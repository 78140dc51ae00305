import { createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Scope } from "../../core/accounts/permissions";

const KEY = /^forge_(user|worker|admin)_([A-Za-z0-9_-]{32,})_([0-9a-f]{8})$/;

/** Returns a new key: forge_<scope>_<random>_<crc>. */
export function mintKey(scope: Scope): string {
  const body = `forge_${scope}_${randomBytes(24).toString("base64url")}`;
  return `${body}_${checksum(body)}`;
}

/** False for a key with a typo, which is rejected without a database lookup. */
export function isWellFormedKey(key: string): boolean {
  const match = KEY.exec(key);
  return match !== null && checksum(key.slice(0, key.lastIndexOf("_"))) === match[3];
}

/** Only this digest of a key is stored. A key has 24 random bytes, so it needs no slow hash. */
export const keyDigest = (key: string): Buffer => createHash("sha256").update(key).digest();

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
