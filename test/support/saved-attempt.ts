import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import type { Forge } from "./forge";

const COLUMNS = "state, outcome, ended_at, result, metrics, usage, gpu_hours_measured, error";

/**
 * Saves a job's running attempt and its worker.
 *
 * @returns a function that undoes the attempt's end, like a restore of the database, and deletes
 *   the job's bill, artifact and outbox entries.
 */
export async function saveAttempt(
  { ctx: { pool } }: Forge,
  jobId: string,
  workerId: string,
): Promise<() => Promise<void>> {
  const [attempt] = await all(pool, "select * from attempts where job_id = $1", [jobId]);
  const [owner] = await all(pool, "select * from workers where worker_id = $1", [workerId]);
  return () =>
    transaction(pool, async (db) => {
      // Disables the triggers that keep ended rows from changing.
      await execute(db, "set local session_replication_role = replica");
      await execute(
        db,
        `update attempts set (${COLUMNS}) = (
           select ${COLUMNS} from jsonb_populate_record(null::attempts, $2)) where job_id = $1`,
        [jobId, JSON.stringify(attempt)],
      );
      await execute(
        db,
        `update workers set status = (jsonb_populate_record(null::workers, $2)).status
         where worker_id = $1`,
        [workerId, JSON.stringify(owner)],
      );
      for (const table of ["artifacts", "outbox", "billing_records"]) {
        // Delete only if there is a row: a test may have locked the table, and the delete would
        // wait.
        const rows = await all(db, `select from ${table} where job_id = $1`, [jobId]);
        if (rows.length > 0) await execute(db, `delete from ${table} where job_id = $1`, [jobId]);
      }
    });
}
