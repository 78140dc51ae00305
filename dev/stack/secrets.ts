import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { mintKey } from "../../services/accounts/key-format";
import { createKey } from "../../services/accounts/keys";
import { ensureUser } from "../../services/accounts/users";

/**
 * The Postgres password and the API keys of a stack. They are created at the stack's first start
 * and kept across restarts.
 */
export interface Secrets {
  postgresPassword: string;
  adminKey: string;
  userKey: string;
  workerKey: string;
}

/** The id of a stack's regular user, whose keys are in stack.json. */
export const LOCAL_USER = "local";

export function loadSecrets(home: string): Secrets {
  const file = join(home, "secrets.json");
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as Secrets;
  const secrets: Secrets = {
    postgresPassword: randomBytes(18).toString("hex"),
    adminKey: mintKey("admin"),
    userKey: mintKey("user"),
    workerKey: mintKey("worker"),
  };
  mkdirSync(home, { recursive: true });
  writeFileSync(file, JSON.stringify(secrets, null, 2), { mode: 0o600 });
  return secrets;
}

/** Inserts the stack's users and keys into a migrated database. */
export async function ensureStackKeys(
  databaseUrl: string,
  secrets: Pick<Secrets, "adminKey" | "userKey" | "workerKey">,
): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    await ensureUser(pool, "admin", "Operator");
    await ensureUser(pool, LOCAL_USER, "Local user");
    const keys = [
      { userId: "admin", scope: "admin", key: secrets.adminKey },
      { userId: LOCAL_USER, scope: "user", key: secrets.userKey },
      { userId: LOCAL_USER, scope: "worker", key: secrets.workerKey },
    ] as const;
    for (const key of keys) {
      await createKey(pool, { ...key, name: `stack ${key.scope}`, madeByAdmin: false });
    }
  } finally {
    await pool.end();
  }
}
