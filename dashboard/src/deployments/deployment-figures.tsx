import type { DeploymentDetail } from "@forge/sdk";
import { Figure, Figures } from "../ui/figure";
import { plural } from "../ui/format";
import { Money } from "../ui/money";
import { useNow } from "../ui/ticker";
import { Duration } from "../ui/time";
import { Hourly, healthyServers, hourlyUsd } from "./deployment-state";

export function DeploymentFigures({ deployment }: { deployment: DeploymentDetail }) {
  const { scaling, created_at, stop_requested_at, status, cost_usd } = deployment;
  const hourly = useNow((now) => hourlyUsd(deployment, now) ?? -1);
  const isActive = status === "active";
  const { min_replicas: least, max_replicas: most } = scaling;
  return (
    <Figures>
      <Figure
        name={isActive ? "Cost so far" : "Cost"}
        value={<Money usd={cost_usd} />}
        note={isActive ? "it grows until it is stopped" : "final"}
      />
      <Figure
        name="USD per hour"
        value={<Hourly usd={hourly < 0 ? null : hourly} />}
        note={
          isActive
            ? hourly < 0
              ? "shown after two minutes"
              : "however many servers it has"
            : "it is not billed any more"
        }
      />
      <Figure
        name="Healthy servers"
        value={healthyServers(deployment)}
        note={
          least === most
            ? `${plural(least, "server")} wanted`
            : `${least} to ${most} servers wanted`
        }
      />
      <Figure
        name={isActive ? "Deployed for" : "Was deployed for"}
        value={<Duration from={created_at} to={stop_requested_at} />}
      />
    </Figures>
  );
}
