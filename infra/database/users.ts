import { listPage, type Page, Where, type WithPosition } from "./pages";
import { execute, maybeOne, type Queryable } from "./pool";

export interface UserRow {
  user_id: string;
  name: string;
  created_at: Date;
}

/** Makes a tenant of this id unless there is one. */
export async function ensureUser(db: Queryable, userId: string, name: string): Promise<void> {
  await execute(db, "insert into users (user_id, name) values ($1, $2) on conflict do nothing", [
    userId,
    name,
  ]);
}

/** Makes a tenant; undefined when the id is taken. */
export async function createUser(
  db: Queryable,
  userId: string,
  name: string,
): Promise<UserRow | undefined> {
  return await maybeOne<UserRow>(
    db,
    `insert into users (user_id, name) values ($1, $2) on conflict do nothing
     returning user_id, name, created_at`,
    [userId, name],
  );
}

export async function listUsers(db: Queryable, page: Page): Promise<WithPosition<UserRow>[]> {
  return await listPage<UserRow>(db, {
    select: "user_id, name, created_at",
    from: "users",
    order: ["created_at", "user_id"],
    where: new Where(),
    page,
  });
}
