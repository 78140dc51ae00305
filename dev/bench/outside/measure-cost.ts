import { Client, Connection } from "@temporalio/client";
import pg from "pg";
import { countJobCost } from "./job-cost";
import { type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import type { Stage } from "./stage";

/** P8: counts the cost of one short job. */
export async function measureCost(stage: Stage, scale: Scale): Promise<Row[]> {
  const forge = await stage.startCountedForge();
  const pool = new pg.Pool({ connectionString: forge.databaseUrl, max: 2 });
  let connection: Connection | undefined;
  try {
    connection = await Connection.connect({ address: stage.temporalAddress });
    const client = new Client({ connection });
    const cost = await countJobCost({ ...forge, pool, client }, scale.countedJobs);
    const row = (what: string, count: number, atMost: number, details?: Record<string, number>) =>
      resultRow(
        {
          id: "P8",
          what: `${what} of a short job`,
          unit: "",
          goal: { of: "forge", atMost },
        },
        { forge: [count] },
        details ? { details } : {},
      );
    return [
      row("transactions", cost.transactions, 8, cost.byTransaction),
      row("SQL statements", cost.statements, 14),
      row("Temporal calls", cost.temporalCalls, 4, cost.byCall),
      row("history events", cost.historyEvents, 8),
    ];
  } finally {
    await connection?.close();
    await pool.end();
    await forge.stop();
  }
}
