import { z } from "zod";
import type { TenantScope } from "../../core/accounts/principal";
import { insufficientScope, type Principal, tenantScopeOf } from "../../core/accounts/principal";
import { NotFound } from "../../core/errors";
import { isUser } from "../../services/accounts/users";
import type { Context } from "../../services/context";

/** The filter of every list that an admin sees all tenants in. */
export const tenantQuery = {
  user_id: z.string().min(1).max(64).optional().describe("admin keys: this tenant's only"),
};

/** As much of a principal as says what it may see. */
type Seeing = Pick<Principal, "scope" | "userId">;

/** Whose rows a list shows: the caller's; for an admin everybody's, or those of the tenant named. */
export function tenantFilter(principal: Seeing, userId: string | undefined): TenantScope {
  const tenantScope = tenantScopeOf(principal);
  if (userId === undefined || userId === tenantScope) return tenantScope;
  if (tenantScope === null) return userId;
  throw insufficientScope("only an admin's key lists another user's", "user_id");
}

/** The one tenant that is asked about: the caller's own, or the one that an admin names. */
export function tenantOf(principal: Principal, userId: string = principal.userId): string {
  return tenantFilter(principal, userId) ?? userId;
}

/** The same, where one that is not there must not look like one that has nothing. */
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
