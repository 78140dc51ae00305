import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { createKey } from "../../services/accounts/keys";
import type { WaitingWorker } from "../../services/fleet/long-polls";

/** The status of a job, of its attempt and of its worker. */
export async function stateOf(db: Queryable, jobId: string): Promise<unknown[]> {
  const row = await maybeOne<{ states: string[] }>(
    db,
    `select array[j.status, a.state, w.status] as states
     from jobs j join attempts a using (job_id) left join workers w on w.worker_id = j.worker_id and a.worker_id = j.worker_id
     where job_id = $1`,
    [jobId],
  );
  return row?.states ?? [];
}

/** The latest poll of a worker, with a new key of tenant "ann". */
export async function pollOf(db: Queryable, workerId: string): Promise<WaitingWorker> {
  const options = { userId: "ann", scope: "worker", name: "w", madeByAdmin: false } as const;
  const { key_id: keyId } = await createKey(db, options);
  const [worker] = await all<{ poll_seq: number }>(db, "select poll_seq from workers");
  return { workerId, keyId, pollSeq: worker?.poll_seq ?? 0, leaseToken: "token" };
}

/**
 * The rows and events of a job that has started. Times and random values are replaced by their
 * types.
 */
export async function rowsOf(db: Queryable, jobId: string): Promise<unknown> {
  const row = await maybeOne(
    db,
    `select to_jsonb(j) as job, to_jsonb(a) as attempt, w.status,
            array(select to_jsonb(e) - 'event_id' from job_events e where job_id = $1 order by event_id) as events,
            (select to_jsonb(o) from outbox o where job_id = $1) as entry
     from jobs j join attempts a using (job_id) join workers w on w.worker_id = a.worker_id
     where job_id = $1`,
    [jobId],
  );
  return JSON.parse(JSON.stringify(row), (name, value) =>
    /_at$|_token$/.test(name) && name !== "lease_token" ? typeof value : value,
  );
}
