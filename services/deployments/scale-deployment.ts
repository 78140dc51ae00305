import { Conflict, InvalidRequest } from "../../core/errors";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../context";
import { lockDeployment, type ShownDeploymentRow, setReplicas } from "./deployments";
import { stopPlacements } from "./placements";

interface ReplicaBounds {
  min_replicas?: number | undefined;
  max_replicas?: number | undefined;
}

/**
 * Changes the minimum and maximum number of a deployment's servers, and stops servers beyond the
 * maximum.
 */
export async function scaleDeployment(
  ctx: Context,
  { deployment_id: id, artifact_id: shownId }: ShownDeploymentRow,
  requested: ReplicaBounds,
): Promise<void> {
  await transaction(ctx.pool, async (db) => {
    const row = await lockDeployment(db, id);
    if (!row) throw new Error(`deployment ${id} no longer exists`);
    if (row.status !== "active") throw deploymentStopped(shownId, row.status);
    const { min_replicas: min = row.min_replicas, max_replicas: max = row.max_replicas } =
      requested;
    if (min > max) {
      const message = `"min_replicas" (${min}) is more than "max_replicas" (${max})`;
      throw new InvalidRequest(message, "min_replicas");
    }
    await setReplicas(db, id, min, max);
    await stopPlacements(db, id, max);
  });
  ctx.signals.emit("deployment", id);
}

export const deploymentStopped = (id: string, status: string): Conflict =>
  new Conflict("deployment_stopped", `deployment "${id}" is ${status}`);
