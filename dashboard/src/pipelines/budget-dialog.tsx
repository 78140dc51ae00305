import { useState } from "react";
import { useForge } from "../api/context";
import { describeError } from "../api/errors";
import { Dialog, DialogForm } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { TextField } from "../ui/field";
import { formatUsd } from "../ui/format";
import type { PipelineDialogProps } from "./pipeline-view";
import { usePipelineChange } from "./use-pipeline";

export const BudgetDialog = ({ open, ...rest }: PipelineDialogProps) => (
  <Dialog open={open} onClose={rest.onClose} title="Budget of this pipeline">
    <BudgetForm {...rest} />
  </Dialog>
);

function BudgetForm({ pipeline, onClose }: Omit<PipelineDialogProps, "open">) {
  const forge = useForge();
  const [text, setText] = useState(pipeline.budget_usd?.toString() ?? "");
  const change = usePipelineChange<number | null>({
    pipelineId: pipeline.pipeline_id,
    call: (usd) => forge.pipelines.setBudget(pipeline.pipeline_id, usd),
    done: (usd) => (usd === null ? "The budget is gone." : `The budget is ${formatUsd(usd)}.`),
  });
  const refusal = change.error ? describeError(change.error) : undefined;
  const submit = (): void =>
    change.mutate(text.trim() === "" ? null : Number(text), { onSuccess: onClose });
  return (
    <DialogForm
      onSubmit={submit}
      onCancel={onClose}
      action="Set the budget"
      busy={change.isPending}
    >
      <p>
        It has cost {formatUsd(pipeline.cost_usd)} so far. A step begins only while the pipeline
        stays within its budget.
      </p>
      <TextField
        label="Budget in USD"
        hint="Empty: no budget."
        error={refusal?.param ? refusal.atField : undefined}
        type="number"
        inputMode="decimal"
        min={0}
        step="any"
        value={text}
        onChange={setText}
      />
      {change.error && !refusal?.param && (
        <ErrorBanner what="The budget was not changed" error={change.error} />
      )}
    </DialogForm>
  );
}
