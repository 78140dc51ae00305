import type { DeploymentDetail } from "@forge/sdk";
import type { Explanation } from "../ui/detail";
import { plural, sentence } from "../ui/format";
import { deploymentState, healthyServers } from "./deployment-state";

export function explainDeployment(deployment: DeploymentDetail): Explanation {
  const healthy = healthyServers(deployment);
  const { min_replicas: least } = deployment.scaling;
  const trouble = deployment.trouble && sentence(deployment.trouble);
  switch (deploymentState(deployment)) {
    case "serving":
      return {
        tone: trouble ? "warn" : "ok",
        why: `${plural(healthy, "server")} answer${healthy === 1 ? "s" : ""}.`,
        next: trouble ?? "The address below stays the same if a worker is lost.",
      };
    case "degraded":
      return {
        tone: "warn",
        why: `Only ${healthy} of ${plural(least, "server")} answer${healthy === 1 ? "s" : ""}.`,
        next: trouble ?? "Forge is starting another one.",
      };
    case "starting":
      return {
        tone: "neutral",
        why: "No server answers yet.",
        next: "Forge is starting one. Requests get HTTP 503 until it answers.",
      };
    case "down":
      return {
        tone: "danger",
        why: "No server answers.",
        next: `${trouble} Forge tries again by itself; requests get HTTP 503 meanwhile.`,
      };
    case "stopping":
      return {
        tone: "neutral",
        why: "It is stopping, and its bill is closed.",
        next: "It counts as stopped when its workers have ended their servers, after 60 s at the latest.",
      };
    default:
      return {
        tone: "neutral",
        why: `It was stopped${deployment.stopped_by ? ` by ${deployment.stopped_by}` : ""}.`,
        next: "A stopped deployment does not come back. Deploy its checkpoint again for a new one.",
      };
  }
}
