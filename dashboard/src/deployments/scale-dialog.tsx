import type { DeploymentDetail } from "@forge/sdk";
import { useState } from "react";
import { useForge } from "../api/context";
import { describeError } from "../api/errors";
import { Dialog, DialogForm } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { TextField } from "../ui/field";
import styles from "./scale-dialog.module.css";
import { useDeploymentChange } from "./use-deployment";

export interface DeploymentDialogProps {
  deployment: DeploymentDetail;
  open: boolean;
  onClose: () => void;
}

const MAX_REPLICAS = 16;
const FIELDS = [
  { name: "min_replicas", label: "At least" },
  { name: "max_replicas", label: "At most" },
] as const;

export const ScaleDialog = ({ open, ...rest }: DeploymentDialogProps) => (
  <Dialog open={open} onClose={rest.onClose} title="How many servers?">
    <ScaleForm {...rest} />
  </Dialog>
);

function ScaleForm({ deployment, onClose }: Omit<DeploymentDialogProps, "open">) {
  const forge = useForge();
  const { deployment_id: id, scaling } = deployment;
  const [values, setValues] = useState({
    min_replicas: String(scaling.min_replicas),
    max_replicas: String(scaling.max_replicas),
  });
  const scale = useDeploymentChange<void>(
    id,
    () =>
      forge.deployments.scale(id, {
        min_replicas: Number(values.min_replicas),
        max_replicas: Number(values.max_replicas),
      }),
    ({ scaling: { min_replicas: least, max_replicas: most } }) =>
      `It has ${least === most ? least : `${least} to ${most}`} servers from now on.`,
  );
  const refusal = scale.error ? describeError(scale.error) : undefined;
  const isPlaced = FIELDS.some(({ name }) => name === refusal?.param);
  return (
    <DialogForm
      onSubmit={() => scale.mutate(undefined, { onSuccess: onClose })}
      onCancel={onClose}
      action="Scale"
      busy={scale.isPending}
    >
      <p>
        Each server is on a worker of its own. Forge starts more than the least only while workers
        that fit are idle. The price does not depend on it.
      </p>
      <div className={styles.fields}>
        {FIELDS.map(({ name, label }) => (
          <TextField
            key={name}
            label={label}
            error={refusal?.param === name ? refusal.atField : undefined}
            type="number"
            inputMode="numeric"
            min={1}
            max={MAX_REPLICAS}
            step={1}
            required
            value={values[name]}
            onChange={(text) => setValues({ ...values, [name]: text })}
          />
        ))}
      </div>
      {scale.error && !isPlaced && <ErrorBanner what="It was not scaled" error={scale.error} />}
    </DialogForm>
  );
}
