import { ForgeError } from "../../core/errors";
import { isWellFormedKey, keyDigest, type Scope } from "../api-keys";
import { findKey } from "../database/keys";
import type { Queryable } from "../database/pool";

/** Who is calling: the tenant, and what the key allows. */
export interface Principal {
  userId: string;
  keyId: string;
  keyName: string;
  scope: Scope;
  /** Workers registered with this key serve every tenant. */
  sharesWorkers: boolean;
}

/** Scopes that may call a route, by the least that it asks for. */
const ALLOWED: Record<Scope, readonly Scope[]> = {
  worker: ["worker", "user", "admin"],
  user: ["user", "admin"],
  admin: ["admin"],
};

type Headers = Record<string, string | string[] | undefined>;

/** Resolves the request's key, from either header, to a principal; 403 when there is none. */
export async function authenticate(db: Queryable, headers: Headers): Promise<Principal> {
  const key = readKey(headers);
  if (key === undefined || !isWellFormedKey(key)) throw invalidKey();
  const found = await findKey(db, keyDigest(key));
  if (!found) throw invalidKey();
  return {
    userId: found.user_id,
    keyId: found.key_id,
    keyName: found.name,
    scope: found.scope,
    sharesWorkers: found.scope === "admin" || (found.scope === "worker" && found.made_by_admin),
  };
}

export function requireScope(principal: Principal, needed: Scope): void {
  if (ALLOWED[needed].includes(principal.scope)) return;
  throw new ForgeError(
    403,
    "insufficient_scope",
    `this needs a key of scope "${needed}"; yours is "${principal.scope}"`,
  );
}

function readKey(headers: Headers): string | undefined {
  const own = headers["x-service-api-key"];
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers.authorization?.toString() ?? "")?.[1];
  if (Array.isArray(own)) return undefined;
  if (headers.authorization !== undefined && bearer === undefined) return undefined;
  if (own !== undefined && bearer !== undefined && own !== bearer) return undefined;
  return own ?? bearer;
}

function invalidKey(): ForgeError {
  return new ForgeError(
    403,
    "invalid_api_key",
    "send a valid API key as X-Service-Api-Key or Authorization: Bearer",
  );
}
