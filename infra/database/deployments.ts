import { all, type Queryable } from "./pool";

/**
 * Of the deployments that a worker serves, those that no accepted result of its has left there, and that
 * no attempt which it still runs is about to: their attempt was lost to another worker.
 */
export async function listStrays(
  db: Queryable,
  workerId: string,
  deploymentIds: string[],
): Promise<string[]> {
  const rows = await all<{ id: string }>(
    db,
    `select id from unnest($2::text[]) as served (id)
     where not exists (
       select from artifacts r join attempts a on a.job_id = r.job_id and a.attempt = r.attempt
       where r.artifact_id = id and r.kind = 'deployment' and a.worker_id = $1)
     and not exists (
       select from attempts a where a.worker_id = $1 and a.state = 'running'
         and a.output_ids->>'deployment_id' = id)`,
    [workerId, deploymentIds],
  );
  return rows.map((row) => row.id);
}
