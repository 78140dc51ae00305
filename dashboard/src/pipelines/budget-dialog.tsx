import type { Pipeline } from "@forge/sdk";
import { type FormEvent, useState } from "react";
import { useForge } from "../api/context";
import { describeError } from "../api/errors";
import { Button } from "../ui/button";
import { Dialog, DialogActions } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { Field, Input } from "../ui/field";
import { formatUsd } from "../ui/format";
import styles from "./dialogs.module.css";
import { usePipelineChange } from "./use-pipeline";

interface Props {
  pipeline: Pipeline;
  open: boolean;
  onClose: () => void;
}

export const BudgetDialog = ({ open, ...rest }: Props) => (
  <Dialog open={open} onClose={rest.onClose} title="Budget of this pipeline">
    <BudgetForm {...rest} />
  </Dialog>
);

function BudgetForm({ pipeline, onClose }: Omit<Props, "open">) {
  const forge = useForge();
  const [text, setText] = useState(pipeline.budget_usd?.toString() ?? "");
  const change = usePipelineChange<number | null>({
    pipelineId: pipeline.pipeline_id,
    call: (usd) => forge.pipelines.setBudget(pipeline.pipeline_id, usd),
    done: (usd) => (usd === null ? "The budget is gone." : `The budget is ${formatUsd(usd)}.`),
  });
  const refusal = change.error ? describeError(change.error) : undefined;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    change.mutate(text.trim() === "" ? null : Number(text), { onSuccess: onClose });
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <p>
        It has cost {formatUsd(pipeline.cost_usd)} so far. A step begins only while the pipeline
        stays within its budget.
      </p>
      <Field
        label="Budget in USD"
        hint="Empty: no budget."
        error={refusal?.param ? refusal.atField : undefined}
      >
        {(input) => (
          <Input
            {...input}
            type="number"
            inputMode="decimal"
            min={0}
            step="any"
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        )}
      </Field>
      {change.error && !refusal?.param && (
        <ErrorBanner what="The budget was not changed" error={change.error} />
      )}
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" type="submit" busy={change.isPending}>
          Set the budget
        </Button>
      </DialogActions>
    </form>
  );
}
