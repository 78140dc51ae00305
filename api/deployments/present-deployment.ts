import { z } from "zod";
import { priceJob } from "../../core/billing/price-job";
import { portionsOf } from "../../core/billing/record";
import {
  DEPLOYMENT_STATUSES,
  DEPLOYMENT_TYPE,
  MAX_REPLICAS,
  PLACEMENT_OUTCOMES,
  PLACEMENT_STATES,
} from "../../core/deployments/workflow";
import { timestamp } from "../../core/timestamp";
import type { ShownDeploymentRow } from "../../services/deployments/deployments";
import type { PlacementRow } from "../../services/deployments/placements";

const replicas = z.int().min(1).max(MAX_REPLICAS);

const replicaSchema = z.object({
  worker_id: z.string().nullable(),
  state: z.enum(PLACEMENT_STATES),
  healthy: z.boolean(),
  inference_url: z.string().nullable(),
  since: timestamp,
});

const placementSchema = z.object({
  placement: z.int(),
  job_id: z.string().describe("the job that made this placement"),
  worker_id: z.string().nullable(),
  state: z.enum(PLACEMENT_STATES),
  outcome: z.enum(PLACEMENT_OUTCOMES).nullable().describe("why the placement ended"),
  inference_url: z.string().nullable(),
  created_at: timestamp,
  serving_at: timestamp.nullable(),
  ended_at: timestamp.nullable(),
});

const fields = {
  deployment_id: z.string(),
  user_id: z.string(),
  status: z.enum(DEPLOYMENT_STATUSES),
  checkpoint_id: z.string().nullable(),
  job_id: z
    .string()
    .describe("the job that made the deployment; the job's billing record bills the deployment"),
  url: z.string().describe("stable address of the deployment: send requests to paths below it"),
  inference_url: z.string().nullable().describe("current address of a server"),
  scaling: z.object({ min_replicas: replicas, max_replicas: replicas }),
  replicas: z
    .array(replicaSchema)
    .describe("the deployment's servers, including one that is starting"),
  trouble: z.string().nullable().describe("why there are fewer servers than required"),
  created_at: timestamp.describe("start of billing"),
  stop_requested_at: timestamp.nullable().describe("end of billing"),
  stopped_at: timestamp.nullable(),
  stopped_by: z.string().nullable(),
  cost_usd: z.number().describe("cost so far"),
};

export const deploymentSchema = z.object(fields).meta({ id: "Deployment" });

export const deploymentDetailSchema = z
  .object({
    ...fields,
    placements: z.array(placementSchema).describe("all placements, including ended ones"),
  })
  .meta({ id: "DeploymentDetail" });

/**
 * A deployment as in the API, with its cost so far.
 * @param placements all placements of this deployment, or only the live ones.
 */
export function presentDeployment(row: ShownDeploymentRow, placements: PlacementRow[]) {
  const live = placements.filter(({ state }) => state !== "ended");
  const serving = live.filter(({ state }) => state === "serving");
  return {
    deployment_id: row.artifact_id,
    user_id: row.user_id,
    status: row.status,
    checkpoint_id: row.checkpoint_id,
    job_id: row.job_id,
    url: `/api/deployments/${encodeURIComponent(row.artifact_id)}/v1`,
    inference_url: (serving.find(({ healthy }) => healthy) ?? serving[0])?.inference_url ?? null,
    scaling: { min_replicas: row.min_replicas, max_replicas: row.max_replicas },
    replicas: live.map((one) => ({
      worker_id: one.worker_id,
      state: one.state,
      healthy: one.state === "serving" && one.healthy,
      inference_url: one.inference_url,
      since: (one.stopping_at ?? one.serving_at ?? one.created_at).toISOString(),
    })),
    trouble: row.trouble,
    created_at: row.active_at.toISOString(),
    stop_requested_at: row.stop_requested_at?.toISOString() ?? null,
    stopped_at: row.stopped_at?.toISOString() ?? null,
    stopped_by: row.stopped_by,
    cost_usd: costOf(row),
  };
}

export function presentDeploymentDetail(row: ShownDeploymentRow, placements: PlacementRow[]) {
  return {
    ...presentDeployment(row, placements),
    placements: placements.map((one) => ({
      placement: one.placement,
      job_id: one.job_id,
      worker_id: one.worker_id,
      state: one.state,
      outcome: one.outcome,
      inference_url: one.inference_url,
      created_at: one.created_at.toISOString(),
      serving_at: one.serving_at?.toISOString() ?? null,
      ended_at: one.ended_at?.toISOString() ?? null,
    })),
  };
}

function costOf({ lifetime_days: days, bill }: ShownDeploymentRow): number {
  const metrics = { ...bill.metrics, deployment_lifetime_days: days };
  const portions = portionsOf({ ...bill, metrics });
  return Number(priceJob(DEPLOYMENT_TYPE, portions, bill.rate_card).totalCostUsd);
}
