import { z } from "zod";
import {
  insufficientScope,
  type Principal,
  type TenantScope,
  tenantScopeOf,
} from "../../core/accounts/permissions";
import { NotFound } from "../../core/errors";
import { isUser } from "../../services/accounts/users";
import type { Context } from "../../services/context";

/** The query parameter with which an admin selects one tenant. */
export const tenantQuery = {
  user_id: z.string().min(1).max(64).optional().describe("for admin keys: only this tenant"),
};

/** The fields of a principal that decide which tenants it may see. */
type Caller = Pick<Principal, "scope" | "userId">;

/**
 * The tenants that a list includes. For an admin: the tenant `userId`, or all tenants if `userId`
 * is undefined. For any other caller: only the caller's own tenant.
 */
export function tenantFilter(principal: Caller, userId: string | undefined): TenantScope {
  const tenantScope = tenantScopeOf(principal);
  if (userId === undefined || userId === tenantScope) return tenantScope;
  if (tenantScope === null) return userId;
  throw insufficientScope("only an admin's key can list another user's data", "user_id");
}

/** The tenant of a request: the caller's own, or the one that an admin selects. */
export function tenantOf(principal: Principal, userId: string = principal.userId): string {
  return tenantFilter(principal, userId) ?? userId;
}

/**
 * Like `tenantOf`, but checks that the tenant exists.
 * @throws 404 for an unknown tenant, which would otherwise look like a tenant without data.
 */
export async function requireTenant(
  { pool }: Context,
  principal: Principal,
  userId: string | undefined,
): Promise<string> {
  const tenant = tenantOf(principal, userId);
  if (tenant !== principal.userId && !(await isUser(pool, tenant))) {
    throw new NotFound("user", tenant, "user_id");
  }
  return tenant;
}
