import type { FormSchema } from "virtual:submission-schemas";
import { useRef, useState } from "react";
import { describeError } from "../api/errors";
import type { JobType } from "../jobs/declared-types";
import { fieldsOf, formOf } from "./fields";
import { nameIn, readFields, type Values } from "./form-values";
import { useEstimate } from "./use-estimate";
import { useSubmission } from "./use-submission";

export interface Start {
  form: number;
  values: Values;
}

/** The state of the form: typed texts, visible problems, and the submission. */
export function useSubmitForm(type: JobType, start: Start) {
  const [values, setValues] = useState(start.values);
  const [chosenForm, setChosenForm] = useState(start.form);
  const [visitedFields, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [sentType, setSentType] = useState<JobType>();
  const element = useRef<HTMLFormElement>(null);
  const refusal = useRef<Values>(undefined);
  const submission = useSubmission();

  const form = formOf(type, chosenForm);
  const fields = fieldsOf(form);
  const { body, problems } = readFields(fields, values);
  const isComplete = Object.keys(problems).length === 0;
  const estimate = useEstimate(type, body, isComplete);
  // A problem is shown only after the focus has left the field, or after the user has tried to
  // submit. So it does not appear while the user types.
  const shown = Object.fromEntries(
    Object.entries(problems).filter(([name]) => sentType === type || visitedFields.has(name)),
  );
  const sent = submission.error ? fieldOf(submission.error, form) : undefined;
  // The server validates an estimate's body like a submission's body, so the form shows errors of
  // both requests. A submission's error is shown until the user changes the field that it names. An
  // estimate's error is shown until the next request for an estimate.
  const refused = [
    sent && { ...sent, at: refusal.current },
    estimate.error ? { ...fieldOf(estimate.error, form), at: values } : undefined,
  ].find((each) => each?.name && values[each.name] === each.at?.[each.name]);

  const markVisited = (name: string): void => setLeft((before) => new Set([...before, name]));

  const focusOn = (name: string | undefined): void => {
    const at = name && element.current?.querySelector(`[data-field="${CSS.escape(name)}"]`);
    if (at) at.querySelector<HTMLElement>("input, textarea, select")?.focus();
  };

  const submit = (): void => {
    setSentType(type);
    if (!isComplete) {
      focusOn(fields.find(({ name }) => problems[name])?.name);
      return;
    }
    if (submission.isPending) return;
    refusal.current = values;
    submission.mutate(
      { type, body },
      {
        onError: (error) => void requestAnimationFrame(() => focusOn(fieldOf(error, form)?.name)),
      },
    );
  };

  return {
    element,
    form,
    chosenForm,
    setChosenForm,
    values,
    set: (name: string, text: string) => setValues((before) => ({ ...before, [name]: text })),
    leave: markVisited,
    errors: refused?.name ? { [refused.name]: refused.message ?? "", ...shown } : shown,
    body,
    submit,
    isPending: submission.isPending,
    /** A submission error that names no field of the form. */
    failure: submission.error && !sent ? submission.error : undefined,
    estimate,
  };
}

/**
 * The field that an error names. `param` may be the stored name of a field that has another name in
 * this form, or a path within the field.
 */
function fieldOf(error: unknown, form: FormSchema): { name: string; message: string } | undefined {
  const { param, atField: message } = describeError(error);
  const path = param?.replace(/^payload\./, "");
  if (!path) return undefined;
  const own = nameIn(form, path.split(/[.[]/)[0] ?? "");
  const field = fieldsOf(form).find(
    ({ name }) => name === own || path === name || path.startsWith(`${name}.`),
  );
  return field && { name: field.name, message };
}

export type SubmitFormState = ReturnType<typeof useSubmitForm>;
