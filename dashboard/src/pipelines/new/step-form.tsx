import { useState } from "react";
import type { JobType } from "../../jobs/declared-types";
import { JOB_TYPE_FACTS } from "../../jobs/declared-types";
import { formTitle } from "../../submit/fields";
import { FormField } from "../../submit/form-field";
import { Checkbox, Field, Select, TextArea, TextField } from "../../ui/field";
import type { StepDraft } from "./draft";
import styles from "./step-form.module.css";
import { fieldsToFill, formsToChoose, inputsFromSteps, STEP_OPTIONS } from "./templates";

interface Props {
  type: JobType;
  step: StepDraft;
  included: readonly JobType[];
  /**
   * The error message of a field, if it should be shown. `place` is the field's path, such as
   * `params.train.epochs` or `gate.train`.
   */
  problemAt: (place: string) => string | undefined;
  onChange: (change: Partial<StepDraft>) => void;
  /** The text of the sweep field and its change handler. Only the training step has this field. */
  sweep?: { text: string; onChange: (text: string) => void };
}

/** One step of a template: the fields that no earlier step fills in, its gate and its approval. */
export function StepForm({ type, step, included, problemAt, onChange, sweep }: Props) {
  const wired = inputsFromSteps(type, included);
  const forms = formsToChoose(type, wired);
  const place = (name: string): string => `params.${type}.${name}`;
  const hidden = [...STEP_OPTIONS.map(({ name }) => place(name)), ...(sweep ? ["sweep"] : [])];
  const fieldProps = (name: string) => ({
    type,
    value: step.values[name] ?? "",
    error: problemAt(place(name)),
    onChange: (text: string) => onChange({ values: { ...step.values, [name]: text } }),
  });
  return (
    <fieldset className={styles.step} data-step={type}>
      <legend className={styles.head}>
        <Checkbox
          label={<span className={styles.name}>{type}</span>}
          checked={step.isIncluded}
          onChange={({ target }) => onChange({ isIncluded: target.checked })}
        />
        <span className="quiet">
          {step.isIncluded ? JOB_TYPE_FACTS[type].step : "Left out."}
          {step.isIncluded &&
            wired.from &&
            ` Its ${wired.from.what} comes from ${wired.from.step}.`}
        </span>
      </legend>
      {step.isIncluded && (
        <div className={styles.fields}>
          {forms.length > 0 && (
            <Field label="Given by">
              {(input) => (
                <Select
                  {...input}
                  value={step.form}
                  onChange={({ target }) => onChange({ form: Number(target.value) })}
                >
                  {forms.map((form, at) => (
                    <option key={formTitle(form)} value={at}>
                      {formTitle(form)}
                    </option>
                  ))}
                </Select>
              )}
            </Field>
          )}
          {fieldsToFill(type, step.form, wired).map((field) => (
            <FormField key={field.name} field={field} {...fieldProps(field.name)} />
          ))}
          <TextField
            label="Gate"
            required={false}
            error={problemAt(`gate.${type}`)}
            hint="The condition that its result must meet."
            spellCheck={false}
            placeholder={JOB_TYPE_FACTS[type].gate}
            value={step.gate}
            onChange={(gate) => onChange({ gate })}
          />
          <div className={styles.wide}>
            <Checkbox
              label="Wait for an approval before it begins"
              checked={step.needsApproval}
              onChange={({ target }) => onChange({ needsApproval: target.checked })}
            />
          </div>
          <More hasProblem={hidden.some((field) => problemAt(field) !== undefined)}>
            {sweep && (
              <div className={styles.wide}>
                <Field
                  label="Sweep"
                  required={false}
                  error={problemAt("sweep")}
                  hint="One training per line of JSON, which overrides the fields above. The best one continues."
                >
                  {(input) => (
                    <TextArea
                      {...input}
                      rows={3}
                      spellCheck={false}
                      placeholder={'{"epochs": 1}\n{"epochs": 3}'}
                      value={sweep.text}
                      onChange={({ target }) => sweep.onChange(target.value)}
                    />
                  )}
                </Field>
              </div>
            )}
            {STEP_OPTIONS.map((field) => (
              <FormField key={field.name} field={field} {...fieldProps(field.name)} />
            ))}
          </More>
        </div>
      )}
    </fieldset>
  );
}

/** Fields that are hidden until the user opens them, or until `hasProblem` is set. */
function More({ hasProblem, children }: { hasProblem: boolean; children: React.ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      className={styles.more}
      open={isOpen || hasProblem}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>Worker, limits and parameters</summary>
      <div className={styles.fields}>{children}</div>
    </details>
  );
}
