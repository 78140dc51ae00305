import type { Context } from "../services/context";
import {
  listUnexpectedDeployments,
  notePlacements,
  type PlacementReport,
} from "../services/deployments/placements";
import type { HeartbeatState, LivePlacement } from "../services/fleet/heartbeats";

/** What a heartbeat tells of the models that its worker serves; what is undefined it does not tell. */
interface Told {
  deployments?: string[] | undefined;
  unhealthy_deployments?: string[] | undefined;
}

/**
 * Compares what a worker says that it serves with what it should serve. Most heartbeats say nothing new,
 * and cost nothing here.
 *
 * @returns what the worker should stop.
 */
export async function compareDeploymentHealth(
  ctx: Context,
  heard: HeartbeatState,
  told: Told,
): Promise<string[]> {
  const live = heard.placements ?? [];
  const listed = told.deployments ?? [];
  const toStop = live
    .filter(({ stopping, served_as: id }) => {
      return stopping && (told.deployments === undefined || listed.includes(id));
    })
    .map(({ served_as: id }) => id);
  const unknown = listed.filter((id) => !live.some((one) => one.served_as === id));
  const strays =
    unknown.length > 0 ? await listUnexpectedDeployments(ctx.pool, heard.worker_id, unknown) : [];

  const news = live.flatMap((placement) => {
    const seen = sight(placement, told);
    return isNews(placement, seen) ? [seen] : [];
  });
  if (news.length > 0 && (await isClockRight(ctx, live))) {
    const { deployments: graces } = ctx.config;
    const changed = await notePlacements(ctx.pool, heard.worker_id, news, graces);
    for (const id of changed) ctx.signals.emit("deployment", id);
  }
  return [...new Set([...toStop, ...strays])];
}

/** A step of the clock that is not noticed yet would take the grace of what is missing; then the next heartbeat tells. */
async function isClockRight(
  { clockWatch }: Pick<Context, "clockWatch">,
  live: LivePlacement[],
): Promise<boolean> {
  if (!live.some((placement) => placement.is_due)) return true;
  return await clockWatch.holdsSince(clockWatch.doubts);
}

/** A worker that never names what it serves is believed as long as it lives. */
function sight(placement: LivePlacement, told: Told): PlacementReport {
  const { deployment_id: deploymentId, served_as: id, missing, healthy } = placement;
  return {
    deploymentId,
    isListed: told.deployments ? told.deployments.includes(id) : !missing,
    isUnhealthy: told.unhealthy_deployments ? told.unhealthy_deployments.includes(id) : !healthy,
  };
}

function isNews(placement: LivePlacement, seen: PlacementReport): boolean {
  if (placement.stopping) return !seen.isListed;
  const isBad = !seen.isListed || seen.isUnhealthy;
  return (
    seen.isListed === placement.missing ||
    seen.isUnhealthy === placement.healthy ||
    (isBad && placement.is_due)
  );
}
