import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

/**
 * A pipeline whose workflow must be started or woken. Column `asked` is the requested version of
 * the pipeline, `told` the delivered version. Several undelivered requests need only one wake.
 */
export interface PipelineWake {
  pipeline_id: string;
  user_id: string;
  request_id: string;
  asked: number;
  tries: number;
}

/**
 * Requests a wake, leased to this process for `leaseS` seconds. The caller holds the pipeline's
 * lock.
 */
export async function requestWorkflowWake(
  db: Queryable,
  pipelineId: string,
  leaseS: number,
): Promise<void> {
  await execute(
    db,
    `update pipelines set asked = asked + 1, tries = 0, due_at = now() + make_interval(secs => $2)
     where pipeline_id = $1`,
    [pipelineId, leaseS],
  );
}

/** The pipeline's undelivered wake, even if it is leased or not due; undefined if there is none. */
export async function findWake(db: Queryable, pipelineId: string) {
  return await maybeOne<PipelineWake>(
    db,
    `select pipeline_id, user_id, request_id, asked, tries from pipelines
     where pipeline_id = $1 and told < asked`,
    [pipelineId],
  );
}

/**
 * Takes a lease of `leaseS` seconds on each wake that is due. The lease replaces a row lock, which
 * would be held during the call to Temporal.
 */
export async function claimDueWakes(db: Queryable, leaseS: number, limit: number) {
  return await all<PipelineWake>(
    db,
    `with due as (
       select pipeline_id from pipelines where told < asked and due_at <= now()
       order by due_at limit $2 for no key update skip locked)
     update pipelines p set due_at = now() + make_interval(secs => $1)
     from due where p.pipeline_id = due.pipeline_id
     returning p.pipeline_id, p.user_id, p.request_id, p.asked, p.tries`,
    [leaseS, limit],
  );
}

/** Records that the workflow has received all changes up to version `asked`. Idempotent. */
export async function recordWake(db: Queryable, pipelineId: string, asked: number): Promise<void> {
  await execute(
    db,
    `update pipelines set told = greatest(told, $2), tries = 0, seen_at = now()
     where pipeline_id = $1`,
    [pipelineId, asked],
  );
}

export async function postponeWake(db: Queryable, pipelineId: string, forS: number): Promise<void> {
  await execute(
    db,
    `update pipelines set due_at = now() + make_interval(secs => $2), tries = tries + 1
     where pipeline_id = $1`,
    [pipelineId, forS],
  );
}
