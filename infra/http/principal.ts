import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { ForgeError } from "../../core/errors";
import { isWellFormedKey, keyDigest, type Scope } from "../api-keys";
import { touchKeys } from "../database/keys";
import type { Queryable } from "../database/pool";
import type { Viewer } from "../database/viewer";
import type { KeyLookup } from "./key-lookup";

/** Who is calling: the tenant, and what the key allows. */
export interface Principal {
  userId: string;
  keyId: string;
  /** The key that the caller's keys and machines belong to: `keyId`; of a session the key it was exchanged for. */
  ownerKeyId: string;
  keyName: string;
  scope: Scope;
  /** Workers registered with this key serve every tenant. */
  sharesWorkers: boolean;
  /** For how many workers the key is; null: for any of the tenant's. */
  workerLimit: number | null;
}

/** Scopes that may call a route, by the least that it asks for. */
const ALLOWED: Record<Scope, readonly Scope[]> = {
  worker: ["worker", "user", "admin"],
  user: ["user", "admin"],
  admin: ["admin"],
};

/** What keys are looked up by. */
export interface Doorkeeper {
  db: Queryable;
  keys: KeyLookup;
}

/**
 * Resolves the request's key, from either header, to a principal.
 *
 * @throws 403 when there is none.
 */
export async function authenticate(
  { db, keys }: Doorkeeper,
  message: IncomingMessage,
  canWait = false,
): Promise<Principal> {
  const key = readKey(message);
  if (key === undefined || !isWellFormedKey(key)) throw invalidKey();
  const digest = keyDigest(key);
  const found = await keys.find(digest, canWait);
  if (!found || !timingSafeEqual(found.digest, digest)) throw invalidKey();
  const ownerKeyId = found.session_of ?? found.key_id;
  // Nobody waits for it, and a failure costs a date.
  if (found.is_unnoticed) touchKeys(db, [found.key_id, ownerKeyId]).catch(() => undefined);
  return {
    userId: found.user_id,
    keyId: found.key_id,
    ownerKeyId,
    keyName: found.name,
    scope: found.scope,
    sharesWorkers: found.scope === "admin" || (found.scope === "worker" && found.made_by_admin),
    workerLimit: found.workers,
  };
}

export function requireScope(principal: Principal, needed: Scope): void {
  if (ALLOWED[needed].includes(principal.scope)) return;
  throw insufficientScope(`this needs a key of scope "${needed}"; yours is "${principal.scope}"`);
}

export const insufficientScope = (message: string, param?: string): ForgeError =>
  new ForgeError(403, "insufficient_scope", message, param);

/** The key that a worker must be bound to for this caller to act for it; null: it may for any of the tenant's. */
export const bindingOf = ({ workerLimit, keyId }: Principal): string | null =>
  workerLimit === null ? null : keyId;

/** Whether this caller may act for a worker. */
export const mayActFor = (
  principal: Principal,
  worker: { user_id: string; bound_key_id: string | null },
): boolean => {
  const key = bindingOf(principal);
  return worker.user_id === principal.userId && (key === null || worker.bound_key_id === key);
};

/** Whose things this key may see: its tenant's; everybody's for an admin. */
export const viewerOf = (principal: Pick<Principal, "scope" | "userId">): Viewer =>
  principal.scope === "admin" ? null : principal.userId;

/** The one key that the request carries, in one header or the same in both. */
function readKey(message: IncomingMessage): string | undefined {
  const { rawHeaders } = message;
  let key: string | undefined;
  // As they were sent: a header that came twice must not hide its second value.
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase();
    const value = rawHeaders[at + 1] ?? "";
    const isOwn = name === "x-service-api-key";
    // Another scheme's is for somebody on the way.
    if (!isOwn && (name !== "authorization" || !/^Bearer\b/i.test(value))) continue;
    const sent = isOwn ? value : /^Bearer\s+(\S+)\s*$/i.exec(value)?.[1];
    if (sent === undefined || (key !== undefined && sent !== key)) return undefined;
    key = sent;
  }
  return key;
}

export function invalidKey(): ForgeError {
  return new ForgeError(
    403,
    "invalid_api_key",
    "send a valid API key as X-Service-Api-Key or Authorization: Bearer",
  );
}
