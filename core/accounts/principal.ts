import { ForgeError } from "../errors";

export const SCOPES = ["user", "worker", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

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

/**
 * Whose rows a statement may show: those of one tenant, by its user_id, or everybody's: `null`, for an
 * admin. Every statement that reads a tenant's data for an API takes one.
 */
export type TenantScope = string | null;

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
export const tenantScopeOf = (principal: Pick<Principal, "scope" | "userId">): TenantScope =>
  principal.scope === "admin" ? null : principal.userId;

export function invalidKey(): ForgeError {
  return new ForgeError(
    403,
    "invalid_api_key",
    "send a valid API key as X-Service-Api-Key or Authorization: Bearer",
  );
}
