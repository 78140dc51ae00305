import { ForgeError, NotFound } from "../core/errors";

/** A resource whose id is unique only within its tenant. */
export interface Owned {
  user_id: string;
  storage_id: string;
}

/**
 * Returns the only resource with this id. Each tenant has at most one. An admin sees all tenants,
 * and must pass `user_id` if several tenants have a resource with this id.
 *
 * @throws 404 if there is none; 400 `ambiguous_id` with the owners if there are several.
 */
export function requireOne<T extends Owned>(
  thing: "artifact" | "deployment",
  id: string,
  found: T[],
): T {
  const [first, second] = found;
  if (!first) throw new NotFound(thing, id, `${thing}_id`);
  if (!second) return first;
  const owners = found.map(({ user_id, storage_id }) => ({ user_id, storage_id }));
  const named = owners.map(({ user_id }) => user_id).join(", ");
  const message = `several tenants have ${thing} "${id}": ${named}; pass user_id to select one`;
  throw new ForgeError(400, "ambiguous_id", message, "user_id", { owners });
}
