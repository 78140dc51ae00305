import type { ApiKey } from "@forge/sdk";

export type KeyState = "active" | "expired" | "revoked";

export function stateOf({ revoked_at, expires_at }: ApiKey, nowMs: number): KeyState {
  if (revoked_at !== null) return "revoked";
  return expires_at !== null && Date.parse(expires_at) <= nowMs ? "expired" : "active";
}

export type Scope = "user" | "worker" | "admin";

export const SCOPES: Record<Scope, string> = {
  user: "All that a tenant may do: submit and cancel jobs, read and upload data, see bills, make keys.",
  worker:
    "For a GPU machine: register, fetch jobs, report results. It reads nothing else of yours.",
  admin: "All tenants: users, rate cards, shared workers, every job and artifact.",
};
