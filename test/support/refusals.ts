import { randomUUID } from "node:crypto";
import { execute } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

/**
 * From now on, the database refuses some changes with a permanent error, so a retry fails, too.
 *
 * @param change for example "before insert on jobs".
 * @param when a condition on `new` or `old`.
 * @returns a function that allows them again.
 */
export async function refuse(
  { ctx: { pool } }: Forge,
  change: string,
  when: string,
  message = "refused by a test",
): Promise<() => Promise<void>> {
  const name = `refuse_${randomUUID().replaceAll("-", "")}`;
  await execute(
    pool,
    `create function ${name}() returns trigger language plpgsql as
     $$ begin raise exception '${message}' using errcode = 'check_violation'; end $$`,
  );
  await execute(
    pool,
    `create trigger ${name} ${change} for each row when (${when}) execute function ${name}()`,
  );
  return async () => {
    await execute(pool, `drop function ${name} cascade`);
  };
}
