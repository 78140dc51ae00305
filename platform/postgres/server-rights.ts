import pg from "pg";

/**
 * Gives a role what a running server needs, and takes what it must not have: no change of the schema,
 * no change of the list of migrations, and the audit log is append-only. Run by the tables' owner after
 * the migrations. Idempotent; one transaction, so that a running server always has its rights.
 *
 * @throws when the role doesn't exist, or is the owner itself.
 */
export async function grantServerRights(connectionString: string, role: string): Promise<void> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 });
  client.on("error", () => undefined); // the query that it breaks says so
  try {
    await client.connect();
    const { rows } = await client.query<{ me: string; schema: string }>(
      "select current_user as me, current_schema() as schema",
    );
    const [{ me, schema } = { me: "", schema: "public" }] = rows;
    if (me === role) throw new Error(`${role} owns the tables; the server needs a role of its own`);
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
