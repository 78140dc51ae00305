import type { Deployment } from "@forge/sdk";
import { Money } from "../ui/money";
import { type Mark, type StateStyle, Status } from "../ui/status-mark";

type State = "serving" | "degraded" | "starting" | "down" | "stopping" | "stopped";

const STATES: Record<State, StateStyle> = {
  serving: { mark: "completed", name: "Serving" },
  degraded: { mark: "assigned", name: "Degraded" },
  starting: { mark: "provisioning", name: "Starting" },
  down: { mark: "failed", name: "Not serving" },
  stopping: { mark: "running", name: "Stopping" },
  stopped: { mark: "cancelled", name: "Stopped" },
};

type Stated = Pick<Deployment, "status" | "replicas" | "scaling" | "trouble">;

export const healthyServers = ({ replicas }: Pick<Deployment, "replicas">): number =>
  replicas.filter(({ state, healthy }) => state === "serving" && healthy).length;

/** The state to show. For an active deployment, it depends on the number of healthy servers. */
export function deploymentState(deployment: Stated): State {
  if (deployment.status === "stopping") return "stopping";
  if (deployment.status === "stopped") return "stopped";
  const healthy = healthyServers(deployment);
  if (healthy >= deployment.scaling.min_replicas) return "serving";
  if (healthy > 0) return "degraded";
  return deployment.trouble === null ? "starting" : "down";
}

export const deploymentMark = (deployment: Stated): Mark =>
  STATES[deploymentState(deployment)].mark;
export const deploymentStateName = (deployment: Stated): string =>
  STATES[deploymentState(deployment)].name;

export const DeploymentState = ({ deployment }: { deployment: Stated }) => (
  <Status mark={deploymentMark(deployment)} text={deploymentStateName(deployment)} />
);

const HOUR_MS = 3_600_000;
/** Below this age, the cost is too small to compute a rate from. */
const MIN_LIVED_MS = 120_000;

/**
 * The deployment's cost per hour; null if it is stopping, stopped, or younger than MIN_LIVED_MS.
 * Billing counts the time from `created_at` to the stop, not the number of servers.
 */
export function hourlyUsd(
  { status, created_at, stop_requested_at, cost_usd }: Deployment,
  nowMs: number,
): number | null {
  if (status !== "active" || stop_requested_at !== null) return null;
  const livedMs = nowMs - Date.parse(created_at);
  return livedMs < MIN_LIVED_MS ? null : (cost_usd / livedMs) * HOUR_MS;
}

/** Shows the cost of an hour, with six decimals if it is below one cent. */
export const Hourly = ({ usd }: { usd: number | null }) => (
  <Money usd={usd} digits={usd !== null && usd < 0.01 ? 6 : 2} />
);
