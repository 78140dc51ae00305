import pg from "pg";

/**
 * Inserts rows one after the other, each in its own transaction. Returns the time of each insertion
 * in ms, which shows how much of a write's time the disk takes.
 */
export async function commitRows(options: {
  databaseUrl: string;
  count: number;
}): Promise<number[]> {
  const client = new pg.Client({ connectionString: options.databaseUrl });
  await client.connect();
  try {
    await client.query("create table if not exists commits (at timestamptz)");
    const latencies: number[] = [];
    while (latencies.length < options.count) {
      const at = performance.now();
      await client.query({ name: "commit", text: "insert into commits values (now())" });
      latencies.push(performance.now() - at);
    }
    return latencies;
  } finally {
    await client.end();
  }
}
