import { listPage, type Page, Where, type WithPosition } from "./pages";
import { maybeOne, type Queryable } from "./pool";
import type { Viewer } from "./viewer";
import type { WorkerRow } from "./workers";

/** A worker as people see it; a decommissioned one is not seen. */
export interface ShownWorkerRow extends WorkerRow {
  current_job_id: string | null;
}

const WITH_JOB = `workers w left join attempts a
  on a.worker_id = w.worker_id and a.state in ('assigned', 'running')`;

/** One page of the workers that this viewer owns, the latest to be registered first. */
export async function listWorkers(
  db: Queryable,
  viewer: Viewer,
  page: Page,
): Promise<WithPosition<ShownWorkerRow>[]> {
  return await listPage<ShownWorkerRow>(db, {
    select: "w.*, a.job_id as current_job_id",
    from: WITH_JOB,
    order: ["w.registered_at", "w.worker_id"],
    where: new Where()
      .and("w.decommissioned_at is null")
      .also(viewer, (user) => `w.user_id = ${user}`),
    page,
  });
}

/** @param gone whether a decommissioned one is found too. */
export async function findWorker(
  db: Queryable,
  workerId: string,
  viewer: Viewer,
  gone = false,
): Promise<ShownWorkerRow | undefined> {
  return await maybeOne<ShownWorkerRow>(
    db,
    `select w.*, a.job_id as current_job_id from ${WITH_JOB}
     where w.worker_id = $1 and ($2::text is null or w.user_id = $2)
       and ($3 or w.decommissioned_at is null)`,
    [workerId, viewer, gone],
  );
}
