import type { BillingSummary } from "@forge/sdk";
import { useState } from "react";
import { describeError } from "../api/errors";
import { Button } from "../ui/button";
import { Dialog, DialogForm } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { Checkbox, TextField } from "../ui/field";
import { formatUsd } from "../ui/format";
import { useSetBudget } from "./use-billing";

interface Props {
  open: boolean;
  onClose: () => void;
  budget: BillingSummary["budget"];
}

export function BudgetDialog({ open, onClose, budget }: Props) {
  return (
    <Dialog open={open} onClose={onClose} title="Monthly budget">
      <BudgetForm onClose={onClose} budget={budget} />
    </Dialog>
  );
}

const DEFAULT_SHARE = 0.8;

/** Parses an amount in USD. Undefined if the text is empty, NaN if it is not an amount. */
function amountOf(text: string): number | undefined {
  const trimmed = text.trim().replace(/^\$/, "");
  if (trimmed === "") return undefined;
  return /^\d+(\.\d{1,6})?$/.test(trimmed) ? Number(trimmed) : Number.NaN;
}

/**
 * The field `warning` of the request. If it is null, Forge never warns. If it is absent, Forge
 * warns at the fraction DEFAULT_SHARE of the cap.
 */
const warningOf = (warns: boolean, from: number | undefined): { warning?: number | null } =>
  warns ? (from === undefined ? {} : { warning: from }) : { warning: null };

const NO_AMOUNT = "An amount in USD, such as 500 or 12.50.";

function BudgetForm({ onClose, budget }: Omit<Props, "open">) {
  const [cap, setCap] = useState(String(budget?.cap_usd ?? ""));
  const [warns, setWarns] = useState(budget?.cap_usd == null || budget.warning_usd !== null);
  const [warning, setWarning] = useState(String(budget?.warning_usd ?? ""));
  const [wasSent, setSent] = useState(false);
  const save = useSetBudget();
  const amount = amountOf(cap);
  const from = amountOf(warning);
  const refused = save.error ? describeError(save.error) : undefined;
  const isPlaced = ["cap_usd", "warning_usd"].includes(refused?.param ?? "");
  const problems = {
    cap: amount === undefined || Number.isNaN(amount) ? NO_AMOUNT : undefined,
    warning: warns && Number.isNaN(from) ? NO_AMOUNT : undefined,
  };
  const submit = (): void => {
    setSent(true);
    if (problems.cap || problems.warning || amount === undefined) return;
    save.mutate({ cap: amount, ...warningOf(warns, from) }, { onSuccess: onClose });
  };
  const byDefault = amount && !Number.isNaN(amount) ? formatUsd(amount * DEFAULT_SHARE) : "80 %";
  return (
    <DialogForm
      onSubmit={submit}
      onCancel={onClose}
      action="Save"
      busy={save.isPending}
      noValidate
      other={
        budget?.cap_usd != null && (
          <Button
            kind="danger"
            busy={save.isPending}
            onClick={() => save.mutate({ cap: null }, { onSuccess: onClose })}
          >
            Remove the cap
          </Button>
        )
      }
    >
      <p className="quiet">
        A cap for each calendar month (UTC). Forge refuses submissions that would pass it: what is
        spent counts, and what is under way with its expected cost. Nothing that runs is stopped.
      </p>
      <TextField
        label="Cap (USD a month)"
        required
        error={(wasSent ? problems.cap : undefined) ?? at(refused, "cap_usd")}
        inputMode="decimal"
        placeholder="500"
        value={cap}
        onChange={setCap}
      />
      <Checkbox
        label="Warn before the cap is reached"
        checked={warns}
        onChange={({ target }) => setWarns(target.checked)}
      />
      {warns && (
        <TextField
          label="Warn from (USD)"
          required={false}
          hint={`Submissions carry a warning from then on. Empty: at ${byDefault}.`}
          error={(wasSent ? problems.warning : undefined) ?? at(refused, "warning_usd")}
          inputMode="decimal"
          value={warning}
          onChange={setWarning}
        />
      )}
      {refused && !isPlaced && <ErrorBanner what="The budget was not set" error={save.error} />}
    </DialogForm>
  );
}

const at = (refused: ReturnType<typeof describeError> | undefined, param: string) =>
  refused?.param === param ? refused.atField : undefined;
