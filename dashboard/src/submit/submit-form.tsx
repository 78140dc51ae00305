import { Link } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { type FocusEvent, type FormEvent, useId } from "react";
import { describeError } from "../api/errors";
import type { JobType } from "../jobs/declared-types";
import { Button } from "../ui/button";
import { cx } from "../ui/cx";
import { ErrorBanner } from "../ui/error-banner";
import { Select } from "../ui/field";
import { formatUsd } from "../ui/format";
import { useHotkeys } from "../ui/hotkeys";
import { CodeExamples } from "./code-examples";
import { EstimatePanel } from "./estimate-panel";
import { fieldOnBlur } from "./field-on-blur";
import { type FormFieldSchema, formsOf, formTitle, OPTION_FIELDS, payloadFields } from "./fields";
import { FormField } from "./form-field";
import { snippetsOf } from "./snippets";
import styles from "./submit-form.module.css";
import { type Start, type SubmitFormState, useSubmitForm } from "./use-submit-form";

/**
 * Options in the order in which users decide on them. OPTION_GROUPS adds a last group with all
 * options that are not listed here.
 */
const GROUPS: readonly { title: string; names: readonly string[] }[] = [
  {
    title: "What the worker must have",
    names: ["resources.gpu", "resources.gpu_type", "resources.memory_gb", "resources.tags"],
  },
  { title: "How it runs", names: ["priority", "timeout_s", "max_attempts", "params"] },
];
const grouped = GROUPS.flatMap(({ names }) => names);
const OPTION_GROUPS = [
  ...GROUPS.map(({ title, names }) => ({
    title,
    fields: names.flatMap((name) => OPTION_FIELDS.filter((field) => field.name === name)),
  })),
  {
    title: "To find it by",
    fields: OPTION_FIELDS.filter(({ name }) => !grouped.includes(name)),
  },
];

export function SubmitForm({ type, start }: { type: JobType; start: Start }) {
  const state = useSubmitForm(type, start);
  useHotkeys([{ keys: "mod+enter", what: "Submit the job", run: state.submit }]);
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    state.submit();
  };
  const onBlur = (event: FocusEvent): void => {
    const name = fieldOnBlur(event)?.dataset.field;
    if (name) state.leave(name);
  };
  const { estimate } = state.estimate;
  return (
    <div className={styles.columns}>
      <form
        ref={state.element}
        onSubmit={onSubmit}
        onBlur={onBlur}
        noValidate
        className={styles.form}
      >
        <FormChoice type={type} state={state} />
        <FieldGroup
          title={`What to ${type}`}
          type={type}
          fields={payloadFields(state.form)}
          state={state}
        />
        {OPTION_GROUPS.map(({ title, fields }) => (
          <FieldGroup key={title} title={title} type={type} fields={fields} state={state} />
        ))}
        {state.failure !== undefined && <Refusal error={state.failure} />}
        <div className={styles.actions}>
          <Button
            kind="primary"
            type="submit"
            icon={<Play size={14} />}
            busy={state.isPending}
            aria-keyshortcuts="Control+Enter Meta+Enter"
          >
            {state.isPending ? "Submitting …" : `Submit the ${type} job`}
          </Button>
          <span className={styles.key}>Ctrl or ⌘ Enter</span>
          {estimate && (
            <span className={styles.cost}>About {formatUsd(estimate.expected_usd)}</span>
          )}
        </div>
      </form>
      <aside className={styles.aside}>
        <EstimatePanel {...state.estimate} />
        <CodeExamples codes={snippetsOf(type, state.body, location.origin)} />
      </aside>
    </div>
  );
}

/** Lets the user choose one of the type's forms. Renders nothing if there is only one. */
function FormChoice({ type, state }: { type: JobType; state: SubmitFormState }) {
  const id = useId();
  const forms = formsOf(type);
  if (forms.length < 2) return null;
  return (
    <div className={styles.choice}>
      <label htmlFor={id}>Described by</label>
      <Select
        id={id}
        value={forms[state.chosenForm] ? state.chosenForm : 0}
        onChange={({ target }) => state.setChosenForm(Number(target.value))}
      >
        {forms.map((form, index) => (
          <option key={formTitle(form)} value={index}>
            {formTitle(form)}
          </option>
        ))}
      </Select>
    </div>
  );
}

interface GroupProps {
  title: string;
  type: JobType;
  fields: readonly FormFieldSchema[];
  state: SubmitFormState;
}

function FieldGroup({ title, type, fields, state }: GroupProps) {
  const narrow = fields.filter(({ type: kind }) => kind === "integer").length;
  return (
    <fieldset className={cx(styles.group, narrow === 3 && styles.three)}>
      <legend className={styles.legend}>{title}</legend>
      {fields.map((field) => (
        <FormField
          key={field.name}
          type={type}
          field={field}
          value={state.values[field.name] ?? ""}
          error={state.errors[field.name]}
          onChange={(text) => state.set(field.name, text)}
        />
      ))}
    </fieldset>
  );
}

function Refusal({ error }: { error: unknown }) {
  const isBudget = describeError(error).code === "budget_exhausted";
  return (
    <ErrorBanner
      what={isBudget ? "The month's budget does not allow this job" : "The job was not submitted"}
      error={error}
      action={isBudget && <Link to="/billing">See the budget</Link>}
    />
  );
}
