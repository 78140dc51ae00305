import pg from "pg";

/**
 * Grants a role the privileges that a running server needs, and revokes the role's other privileges
 * on tables and sequences. The role can't change table definitions or the list of migrations, and
 * can only append to the audit log. The owner of the tables runs this after the migrations.
 * Idempotent. Runs in one transaction, so that a running server never lacks a privilege.
 *
 * @throws Error if the role doesn't exist, or owns the tables.
 */
export async function grantServerRights(connectionString: string, role: string): Promise<void> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 });
  client.on("error", () => undefined); // the running query reports the error
  try {
    await client.connect();
    const { rows } = await client.query<{ me: string; schema: string }>(
      "select current_user as me, current_schema() as schema",
    );
    const [{ me, schema } = { me: "", schema: "public" }] = rows;
    if (me === role) throw new Error(`${role} owns the tables; the server needs a separate role`);
    await client.query(statements(pg.escapeIdentifier(schema), pg.escapeIdentifier(role)));
  } finally {
    await client.end();
  }
}

const statements = (schema: string, role: string): string => `
  begin;
  revoke all on all tables in schema ${schema} from ${role};
  revoke all on all sequences in schema ${schema} from ${role};
  grant usage on schema ${schema} to ${role};
  grant select, insert, update, delete on all tables in schema ${schema} to ${role};
  grant usage on all sequences in schema ${schema} to ${role};
  revoke insert, update, delete on migrations from ${role};
  revoke update, delete on audit_entries from ${role};
  commit;
`;
