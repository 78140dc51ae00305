import { listPage, type Page, Where } from "../../platform/postgres/pages";
import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

const USER = "user_id, name, payment_customer_id, created_at";

export interface UserRow {
  user_id: string;
  name: string;
  payment_customer_id: string | null;
  created_at: Date;
}

/** Creates a tenant unless one with this id exists. */
export async function ensureUser(db: Queryable, userId: string, name: string): Promise<void> {
  await execute(db, "insert into users (user_id, name) values ($1, $2) on conflict do nothing", [
    userId,
    name,
  ]);
}

/** Creates a tenant; undefined if the id is taken. */
export async function createUser(db: Queryable, userId: string, name: string) {
  return await maybeOne<UserRow>(
    db,
    `insert into users (user_id, name) values ($1, $2) on conflict do nothing
     returning ${USER}`,
    [userId, name],
  );
}

export async function isUser(db: Queryable, userId: string): Promise<boolean> {
  const row = await maybeOne(db, "select 1 as one from users where user_id = $1", [userId]);
  return row !== undefined;
}

/** Returns the user and the previous customer id; undefined if there is no such user. */
export async function setPaymentCustomer(db: Queryable, userId: string, customerId: string | null) {
  return await maybeOne<UserRow & { before: string | null }>(
    db,
    `with was as (
       select user_id, payment_customer_id as before from users where user_id = $1 for no key update)
     update users u set payment_customer_id = $2 from was where u.user_id = was.user_id
     returning ${USER.replace("user_id", "u.user_id")}, before`,
    [userId, customerId],
  );
}

export async function listUsers(db: Queryable, page: Page) {
  return await listPage<UserRow>(db, {
    select: USER,
    from: "users",
    order: ["created_at", "user_id"],
    where: new Where(),
    page,
  });
}
