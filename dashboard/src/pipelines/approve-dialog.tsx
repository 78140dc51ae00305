import type { PipelineStep } from "@forge/sdk";
import { useState } from "react";
import { useForge } from "../api/context";
import { DEPLOYMENT_TYPE } from "../jobs/declared-types";
import { Button } from "../ui/button";
import { Dialog, DialogActions } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { Field, Select, TextArea } from "../ui/field";
import { formatUsd } from "../ui/format";
import { GateView } from "./gate-view";
import type { PipelineDialogProps } from "./pipeline-view";
import { usePipelineChange } from "./use-pipeline";

export function ApproveDialog({ pipeline, open, onClose }: PipelineDialogProps) {
  const waiting = pipeline.steps.filter(({ status }) => status === "waiting_approval");
  const [first] = waiting;
  return (
    <Dialog
      open={open && first !== undefined}
      onClose={onClose}
      title={waiting.length === 1 && first ? `Approve ${first.name}?` : "Approve a step?"}
    >
      {first && <Decide pipeline={pipeline} waiting={waiting} onClose={onClose} />}
    </Dialog>
  );
}

interface Decision {
  step: string;
  approved: boolean;
  note: string;
}

interface DecideProps extends Omit<PipelineDialogProps, "open"> {
  waiting: PipelineStep[];
}

function Decide({ pipeline, waiting, onClose }: DecideProps) {
  const forge = useForge();
  const [name, setName] = useState("");
  const [note, setNote] = useState("");
  const step = waiting.find((each) => each.name === name) ?? waiting[0];
  const decide = usePipelineChange<Decision>({
    pipelineId: pipeline.pipeline_id,
    call: ({ step: which, approved, note: why }) =>
      forge.pipelines.approve(pipeline.pipeline_id, which, {
        approved,
        ...(why ? { note: why } : {}),
      }),
    done: ({ step: which, approved }) =>
      approved ? `${which} is approved and begins.` : `${which} is rejected: the pipeline ends.`,
  });
  if (!step) return null;
  const send = (approved: boolean): void =>
    decide.mutate({ step: step.name, approved, note: note.trim() }, { onSuccess: onClose });
  const before = pipeline.steps.filter((each) => step.needs.includes(each.name) && each.gate);
  return (
    <>
      {waiting.length > 1 && (
        <Field label="Step">
          {(input) => (
            <Select {...input} value={step.name} onChange={({ target }) => setName(target.value)}>
              {waiting.map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </Select>
          )}
        </Field>
      )}
      <p>
        Step <strong>{step.name}</strong> is a {step.job_type} job. {costSentence(step)}
      </p>
      {before.map(({ name: from, gate }) => gate && <GateView key={from} gate={gate} />)}
      <Field label="Note" required={false} hint="Kept with the decision.">
        {(input) => (
          <TextArea
            {...input}
            rows={2}
            value={note}
            onChange={({ target }) => setNote(target.value)}
          />
        )}
      </Field>
      {decide.error && <ErrorBanner what="The decision was not taken" error={decide.error} />}
      <DialogActions>
        <Button kind="danger" disabled={decide.isPending} onClick={() => send(false)}>
          Reject
        </Button>
        <Button kind="primary" busy={decide.isPending} onClick={() => send(true)}>
          Approve {step.name}
        </Button>
      </DialogActions>
    </>
  );
}

function costSentence({ job_type, estimated_cost_usd }: PipelineStep): string {
  if (job_type === DEPLOYMENT_TYPE) return "A deployment is billed until someone stops it.";
  if (estimated_cost_usd == null) return "Its cost can't be estimated yet.";
  return `Jobs of its type cost ${formatUsd(estimated_cost_usd)} lately.`;
}
