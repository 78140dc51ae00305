import { ForgeError } from "../errors";

export const SCOPES = ["user", "worker", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** The caller: its tenant, and what its key allows. */
export interface Principal {
  userId: string;
  keyId: string;
  /**
   * The owner of the keys and machines that the caller creates. In a session of the dashboard, this
   * is the key that was used to sign in. Otherwise, it is `keyId`.
   */
  ownerKeyId: string;
  keyName: string;
  scope: Scope;
  /** Workers that register with this key may also serve other tenants. */
  sharesWorkers: boolean;
  /** The maximum number of workers that may be bound to this key; null: no limit. */
  workerLimit: number | null;
}

/** For each scope that a route requires: the scopes that satisfy it. */
const ALLOWED: Record<Scope, readonly Scope[]> = {
  worker: ["worker", "user", "admin"],
  user: ["user", "admin"],
  admin: ["admin"],
};

/** The tenant (user_id) whose rows an API query returns; null: all tenants (admins). */
export type TenantScope = string | null;

export function requireScope(principal: Principal, needed: Scope): void {
  if (ALLOWED[needed].includes(principal.scope)) return;
  throw insufficientScope(`this needs a key of scope "${needed}"; yours is "${principal.scope}"`);
}

export const insufficientScope = (message: string, param?: string): ForgeError =>
  new ForgeError(403, "insufficient_scope", message, param);

/**
 * Returns the caller's key if the caller may act only for workers that are bound to this key. Null:
 * the caller may act for all workers of its tenant.
 */
export const restrictingKeyId = ({ workerLimit, keyId }: Principal): string | null =>
  workerLimit === null ? null : keyId;

export const mayActFor = (
  principal: Principal,
  worker: { user_id: string; bound_key_id: string | null },
): boolean => {
  const key = restrictingKeyId(principal);
  return worker.user_id === principal.userId && (key === null || worker.bound_key_id === key);
};

export const tenantScopeOf = (principal: Pick<Principal, "scope" | "userId">): TenantScope =>
  principal.scope === "admin" ? null : principal.userId;

export function invalidKey(): ForgeError {
  return new ForgeError(
    403,
    "invalid_api_key",
    "send a valid API key as X-Service-Api-Key or Authorization: Bearer",
  );
}
