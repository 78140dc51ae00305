import { ForgeError, NotFound } from "../core/errors";

/** A resource whose id is unique only within its tenant. */
export interface TenantResource {
  user_id: string;
  storage_id: string;
}

/**
 * Returns the only resource with this id. Each tenant has at most one, but an admin sees the
 * resources of all tenants. If several have this id, the error tells the admin how to select one,
 * depending on `selector`: pass the query parameter `user_id`, or use the `storage_id` as the id.
 *
 * @throws 404 if there is none; 400 `ambiguous_id` with the owners if there are several.
 */
export function requireOne<T extends TenantResource>(
  thing: "artifact" | "deployment",
  id: string,
  found: T[],
  selector: "user_id" | "storage_id" = "user_id",
): T {
  const [first, second] = found;
  if (!first) throw new NotFound(thing, id, `${thing}_id`);
  if (!second) return first;
  const owners = found.map(({ user_id, storage_id }) => ({ user_id, storage_id }));
  const named = owners.map(({ user_id }) => user_id).join(", ");
  const how = selector === "user_id" ? "pass user_id" : "use its storage_id as the id";
  const message = `several tenants have ${thing} "${id}": ${named}; ${how} to select one`;
  const param = selector === "user_id" ? "user_id" : `${thing}_id`;
  throw new ForgeError(400, "ambiguous_id", message, param, { owners });
}
