import { createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Scope } from "../../core/accounts/principal";

const KEY = /^forge_(user|worker|admin)_([A-Za-z0-9_-]{32,})_([0-9a-f]{8})$/;

/** A new key's text: forge_<scope>_<random>_<crc>. */
export function mintKey(scope: Scope): string {
  const body = `forge_${scope}_${randomBytes(24).toString("base64url")}`;
  return `${body}_${checksum(body)}`;
}

/** False for a key with a typo: refused without asking the database. */
export function isWellFormedKey(key: string): boolean {
  const match = KEY.exec(key);
  return match !== null && checksum(key.slice(0, key.lastIndexOf("_"))) === match[3];
}

/** All that is stored of a key's text. 24 random bytes need no slow hash. */
export const keyDigest = (key: string): Buffer => createHash("sha256").update(key).digest();

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
