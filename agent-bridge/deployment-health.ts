import type { Context } from "../services/context";
import {
  listUnexpectedDeployments,
  type PlacementReport,
  recordPlacementReports,
} from "../services/deployments/placement-reports";
import type { HeartbeatState, LivePlacement } from "../services/fleet/heartbeats";

/** The deployments in a heartbeat. Workers that don't report them omit the fields. */
interface HealthReport {
  deployments?: string[] | undefined;
  unhealthy_deployments?: string[] | undefined;
}

/**
 * Compares the deployments that a worker reports with those it should serve, and records changes.
 * Most heartbeats report no change, and need no query here.
 * @returns the deployments that the worker should stop.
 */
export async function compareDeploymentHealth(
  ctx: Context,
  state: HeartbeatState,
  report: HealthReport,
): Promise<string[]> {
  const live = state.placements ?? [];
  const listed = report.deployments ?? [];
  const toStop = live
    .filter(({ stopping, served_as: id }) => stopping && (report.deployments?.includes(id) ?? true))
    .map(({ served_as: id }) => id);
  const unknown = listed.filter((id) => !live.some((one) => one.served_as === id));
  const unexpected =
    unknown.length > 0 ? await listUnexpectedDeployments(ctx.pool, state.worker_id, unknown) : [];

  const changes = live.flatMap((placement) => {
    const reported = reportOf(placement, report);
    return isChange(placement, reported) ? [reported] : [];
  });
  if (changes.length > 0 && (await isGraceOverReliable(ctx, live))) {
    const { deployments: graces } = ctx.config;
    const changed = await recordPlacementReports(ctx.pool, state.worker_id, changes, graces);
    for (const id of changed) ctx.signals.emit("deployment", id);
  }
  return [...new Set([...toStop, ...unexpected])];
}

/**
 * Whether the placements' `grace_over` can be trusted. Returns false if a grace period seems to be
 * over, but the database's clock may have just been set forward. The caller then records nothing,
 * because the next heartbeat reports the same state again.
 */
async function isGraceOverReliable(
  { clockWatch }: Pick<Context, "clockWatch">,
  live: LivePlacement[],
): Promise<boolean> {
  if (!live.some((placement) => placement.grace_over)) return true;
  return await clockWatch.isUnchangedSince(clockWatch.revision);
}

/**
 * Returns the state of a placement according to the worker. If the worker omits a field, uses the
 * placement's stored state.
 */
function reportOf(placement: LivePlacement, report: HealthReport): PlacementReport {
  const { deployment_id: deploymentId, served_as: id, missing, healthy } = placement;
  return {
    deploymentId,
    isListed: report.deployments?.includes(id) ?? !missing,
    isUnhealthy: report.unhealthy_deployments?.includes(id) ?? !healthy,
  };
}

function isChange(placement: LivePlacement, reported: PlacementReport): boolean {
  if (placement.stopping) return !reported.isListed;
  const isBad = !reported.isListed || reported.isUnhealthy;
  return (
    reported.isListed === placement.missing ||
    reported.isUnhealthy === placement.healthy ||
    (isBad && placement.grace_over)
  );
}
