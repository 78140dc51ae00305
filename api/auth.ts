import type { Route } from "../infra/http/app";

export function authRoutes(): Route[] {
  return [
    {
      method: "GET",
      paths: ["/api/auth/ping"],
      scope: "worker",
      handle: async ({ principal }) => ({
        ok: true,
        user_id: principal.userId,
        key_id: principal.keyId,
        scope: principal.scope,
      }),
    },
  ];
}
