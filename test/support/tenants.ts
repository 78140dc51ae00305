import { ApiClient } from "../../dev/api-client";
import { createKey } from "../../services/accounts/keys";
import { ensureUser } from "../../services/accounts/users";
import type { Forge } from "./forge";
import { TestWorker } from "./test-worker";

export interface Tenant {
  user: ApiClient;
  /** A worker with this tenant's worker key; not registered yet. */
  worker(id: string): TestWorker;
}

/** Creates a tenant in addition to the stack's own user. */
export async function createTenant(forge: Forge, userId: string): Promise<Tenant> {
  const { pool } = forge.ctx;
  await ensureUser(pool, userId, userId);
  const client = async (scope: "user" | "worker"): Promise<ApiClient> => {
    const { key } = await createKey(pool, { userId, scope, name: scope, madeByAdmin: false });
    return new ApiClient(forge.stack.apiUrl, key);
  };
  const [user, worker] = [await client("user"), await client("worker")];
  return { user, worker: (id) => new TestWorker(worker, id) };
}

/** Usage of the tenant's limits, by the limit's name. Null: Forge does not count this usage. */
export async function usesOf({
  user,
}: Pick<Tenant, "user">): Promise<Record<string, number | null>> {
  const { limits } = await user.get<{ limits: { name: string; used: number | null }[] }>(
    "/api/limits",
  );
  return Object.fromEntries(limits.map(({ name, used }) => [name, used]));
}
