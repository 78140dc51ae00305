import type { DeploymentDetail } from "@forge/sdk";
import { CircleStop, Scaling } from "lucide-react";
import { useState } from "react";
import { useForge } from "../api/context";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialog";
import { formatUsd, plural } from "../ui/format";
import { useHotkeys } from "../ui/hotkeys";
import { type DeploymentDialogProps, ScaleDialog } from "./scale-dialog";
import { useDeploymentChange } from "./use-deployment";

export function DeploymentActions({ deployment }: { deployment: DeploymentDetail }) {
  const [open, setOpen] = useState<"stop" | "scale">();
  const close = (): void => setOpen(undefined);
  const isActive = deployment.status === "active";
  useHotkeys(
    isActive
      ? [
          { keys: "s", what: "Stop the deployment", run: () => setOpen("stop") },
          { keys: "e", what: "Change how many servers it has", run: () => setOpen("scale") },
        ]
      : [],
  );
  if (!isActive) return null;
  return (
    <>
      <Button icon={<Scaling size={14} />} hotkey="e" onClick={() => setOpen("scale")}>
        Scale
      </Button>
      <Button
        kind="danger"
        icon={<CircleStop size={14} />}
        hotkey="s"
        onClick={() => setOpen("stop")}
      >
        Stop
      </Button>
      <ScaleDialog deployment={deployment} open={open === "scale"} onClose={close} />
      <StopDialog deployment={deployment} open={open === "stop"} onClose={close} />
    </>
  );
}

function StopDialog({ deployment, open, onClose }: DeploymentDialogProps) {
  const forge = useForge();
  const { deployment_id: id, replicas, cost_usd } = deployment;
  const stop = useDeploymentChange<void>(
    id,
    () => forge.deployments.stop(id),
    ({ status }) =>
      status === "stopped" ? "The deployment is stopped." : "The deployment is stopping.",
  );
  const serving = replicas.filter(({ state }) => state === "serving").length;
  return (
    <ConfirmDialog
      open={open}
      onClose={onClose}
      title="Stop this deployment?"
      action="Stop the deployment"
      change={stop}
      refused="The deployment was not stopped"
      onConfirm={(close) => stop.mutate(undefined, { onSuccess: close })}
    >
      <p>
        {serving > 0 ? `${plural(serving, "server")} end${serving === 1 ? "s" : ""}. ` : ""}
        Its address answers HTTP 409 from now on, and requests under way break off.
      </p>
      <p>
        Its bill is closed at {formatUsd(cost_usd)}. It does not come back: deploying the checkpoint
        again makes another deployment with another address.
      </p>
    </ConfirmDialog>
  );
}
