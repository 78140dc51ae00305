import type { Principal } from "../infra/http/principal";

/** Whose things this key may read: its tenant's; `null`, everybody's, for an admin. */
export const viewerOf = (principal: Principal): string | null =>
  principal.scope === "admin" ? null : principal.userId;
