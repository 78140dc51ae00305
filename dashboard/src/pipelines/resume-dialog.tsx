import { useState } from "react";
import { useForge } from "../api/context";
import { describeError } from "../api/errors";
import { Dialog, DialogForm } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { Field, Select, TextField } from "../ui/field";
import { gatesOf } from "./gates-of";
import type { PipelineDialogProps } from "./pipeline-view";
import { usePipelineChange } from "./use-pipeline";

export const ResumeDialog = ({ open, ...rest }: PipelineDialogProps) => (
  <Dialog
    open={open}
    onClose={rest.onClose}
    title={
      rest.pipeline.status === "completed" ? "Run this pipeline again?" : "Resume this pipeline?"
    }
  >
    <ResumeForm {...rest} />
  </Dialog>
);

type Changes = {
  from?: string;
  budget_usd?: number;
  gates?: { step: string; condition: string }[];
};

function ResumeForm({ pipeline, onClose }: Omit<PipelineDialogProps, "open">) {
  const forge = useForge();
  const isDone = pipeline.status === "completed";
  const before = gatesOf(pipeline);
  const [from, setFrom] = useState(isDone ? (pipeline.steps[0]?.name ?? "") : "");
  const [budget, setBudget] = useState(pipeline.budget_usd?.toString() ?? "");
  const [gates, setGates] = useState(before);
  const resume = usePipelineChange<Changes>({
    pipelineId: pipeline.pipeline_id,
    call: (changes) => forge.pipelines.resume(pipeline.pipeline_id, changes),
    done: () => `Run ${pipeline.run + 1} has begun.`,
  });
  const changed = gates.filter(
    ({ condition }, at) => condition.trim() !== "" && condition !== before[at]?.condition,
  );
  const submit = (): void => {
    const usd = budget.trim() === "" ? null : Number(budget);
    resume.mutate(
      {
        ...(from ? { from } : {}),
        ...(usd !== null && usd !== pipeline.budget_usd ? { budget_usd: usd } : {}),
        ...(changed.length > 0
          ? { gates: changed.map(({ step, condition }) => ({ step, condition })) }
          : {}),
      },
      { onSuccess: onClose },
    );
  };
  const refusal = resume.error ? describeError(resume.error) : undefined;
  const errorAt = (param: string): string | undefined =>
    refusal?.param === param ? refusal.atField : undefined;
  const gateError = (step: string): string | undefined =>
    errorAt(`gates.${changed.findIndex((gate) => gate.step === step)}.condition`);
  const isPlaced =
    refusal !== undefined &&
    (["from", "budget_usd"].includes(refusal.param ?? "") ||
      gates.some(({ step }) => gateError(step)));
  return (
    <DialogForm
      onSubmit={submit}
      onCancel={onClose}
      action={isDone ? "Run again" : "Resume"}
      busy={resume.isPending}
    >
      <p>
        {isDone
          ? "The chosen step and all after it are done again, as another run of this pipeline. A deployment that it made stays until it is stopped."
          : "Starts another run of this pipeline. Completed steps are kept and not billed again."}
      </p>
      <Field label="Begin with" error={errorAt("from")}>
        {(input) => (
          <Select {...input} value={from} onChange={({ target }) => setFrom(target.value)}>
            {!isDone && <option value="">what did not complete</option>}
            {pipeline.steps.map(({ name }) => (
              <option key={name} value={name}>
                {name}, and all after it
              </option>
            ))}
          </Select>
        )}
      </Field>
      {gates.map((gate, at) => (
        <TextField
          key={gate.step}
          label={`Gate of ${gate.step}`}
          error={gateError(gate.step)}
          hint={
            gate.hasFailed
              ? "With another gate, the result is checked again without running the step."
              : undefined
          }
          spellCheck={false}
          value={gate.condition}
          onChange={(condition) =>
            setGates(gates.map((each, n) => (n === at ? { ...each, condition } : each)))
          }
        />
      ))}
      <TextField
        label="Budget in USD"
        error={errorAt("budget_usd")}
        hint="For all runs together."
        type="number"
        inputMode="decimal"
        min={0}
        step="any"
        placeholder="no budget"
        value={budget}
        onChange={setBudget}
      />
      {resume.error && !isPlaced && (
        <ErrorBanner what="The pipeline was not resumed" error={resume.error} />
      )}
    </DialogForm>
  );
}
