import type { DeploymentAction } from "../../core/deployments/workflow";
import { newId } from "../../platform/ids";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../context";
import { setAvoided } from "../jobs/avoided-workers";
import { findJob, type JobRow } from "../jobs/jobs";
import {
  type DeploymentRow,
  lockDeployment,
  msUntilNextTry,
  recordPlacementFailure,
} from "./deployments";
import { hasIdleWorker, insertPlacementJob } from "./placement-jobs";
import {
  failPlacement,
  insertPlacement,
  listPlacements,
  nextPlacement,
  type PlacementRow,
} from "./placements";

/**
 * Starts a server of an active deployment if the deployment has fewer than its minimum, or fewer
 * than its maximum while an idle worker fits. Makes one placement at a time, because the job of
 * each placement must avoid the workers that already serve the deployment.
 */
export async function keepServers(ctx: Context, deploymentId: string): Promise<DeploymentAction> {
  const { retryS } = ctx.config.deployments;
  const { look, isQueued } = await transaction(ctx.pool, async (db) => {
    const deployment = await lockDeployment(db, deploymentId);
    if (deployment?.status !== "active") return { look: { isOver: false, againInMs: 0 } };
    const live = await listPlacements(db, [deploymentId], true);
    const starting = live.find(({ state }) => state === "starting");
    const job = starting && (await requireJob(db, starting.job_id));
    if (starting && job?.status === "failed") {
      await failPlacement(db, deploymentId, starting.placement);
      await recordPlacementFailure(db, deploymentId, failureOf(job), retryS);
      return { look: { isOver: false, againInMs: 0 } };
    }
    if (starting && job) {
      const isQueued = await setAvoided(db, job, workersOf(live));
      return { look: { isOver: false, placing: jobOf(job, starting.placement) }, isQueued };
    }
    if (!(await needsAnother(db, deployment, live))) return { look: { isOver: false } };
    const waitMs = await msUntilNextTry(db, deploymentId);
    if (waitMs > 0) return { look: { isOver: false, againInMs: waitMs } };
    const placing = await startPlacement(db, deployment, live);
    return { look: { isOver: false, placing }, isQueued: true };
  });
  if (isQueued) ctx.signals.queueChanged();
  return look;
}

async function needsAnother(
  db: Queryable,
  { deployment_id: id, min_replicas: min, max_replicas: max }: DeploymentRow,
  live: PlacementRow[],
): Promise<boolean> {
  const serving = live.filter(({ state }) => state === "serving").length;
  return serving < min || (serving < max && (await hasIdleWorker(db, id)));
}

async function startPlacement(db: Queryable, deployment: DeploymentRow, live: PlacementRow[]) {
  const { deployment_id: deploymentId, job_id: firstId } = deployment;
  const first = await requireJob(db, firstId);
  const placement = await nextPlacement(db, deploymentId);
  const jobId = newId("job");
  const avoid = workersOf(live);
  await insertPlacementJob(db, { jobId, deploymentId, placement, first, avoid });
  await insertPlacement(db, deploymentId, placement, jobId);
  return jobOf({ ...first, job_id: jobId }, placement);
}

const workersOf = (live: PlacementRow[]): string[] =>
  live.flatMap(({ state, worker_id: id }) => (state === "starting" || id === null ? [] : [id]));

const jobOf = (job: JobRow, placement: number) => ({
  jobId: job.job_id,
  maxAttempts: job.max_attempts,
  requestId: job.request_id,
  userId: job.user_id,
  placement,
});

const failureOf = ({ job_id: id, error, error_code: code }: JobRow): string =>
  `job ${id}, which was to place it again, failed: ${error ?? code}`.slice(0, 2_000);

async function requireJob(db: Queryable, jobId: string): Promise<JobRow> {
  const job = await findJob(db, jobId, null);
  if (!job) throw new Error(`job ${jobId} is not in the database`);
  return job;
}
