import { ForgeError, NotFound } from "../../core/errors";

/** A thing whose id is unique within its tenant only. */
export interface Owned {
  user_id: string;
  storage_id: string;
}

/**
 * The one thing that an id names. A tenant has one at most; an admin, who sees all tenants', must name the
 * tenant where several have one.
 *
 * @throws 404 where there is none; 400 `ambiguous_id` where there are several, with whose they are.
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
  const message = `several tenants have ${thing} "${id}": ${named}; name one by user_id`;
  throw new ForgeError(400, "ambiguous_id", message, "user_id", { owners });
}
