import { type ComponentProps, type ReactElement, type ReactNode, useId } from "react";
import { cx } from "./cx";
import styles from "./field.module.css";

interface FieldProps {
  label: string;
  hint?: ReactNode;
  /** Shown below the input. Screen readers announce it. */
  error?: string | undefined;
  required?: boolean | undefined;
  className?: string | undefined;
  /** Receives the attributes that connect the input to its label and messages. */
  children: (input: FieldInput) => ReactElement;
}

export interface FieldInput {
  id: string;
  required?: boolean;
  "aria-invalid"?: true;
  "aria-describedby"?: string;
}

/** A labelled input with a hint and an error. */
export function Field({ label, hint, error, required, className, children }: FieldProps) {
  const id = useId();
  const describedBy = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className={cx(styles.field, className)}>
      <label htmlFor={id} className={styles.label}>
        {label}
        {!required && required !== undefined && <span className={styles.optional}>optional</span>}
      </label>
      {children({
        id,
        ...(required ? { required } : {}),
        ...(error ? { "aria-invalid": true } : {}),
        ...(describedBy ? { "aria-describedby": describedBy } : {}),
      })}
      {error && (
        <p id={`${id}-error`} className={styles.error} role="alert">
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
    </div>
  );
}

export function Input({ className, ...rest }: ComponentProps<"input">) {
  return <input autoComplete="off" {...rest} className={cx(styles.input, className)} />;
}

export function TextArea({ className, ...rest }: ComponentProps<"textarea">) {
  return <textarea {...rest} className={cx(styles.input, styles.area, className)} />;
}

export function Select({ className, ...rest }: ComponentProps<"select">) {
  return <select {...rest} className={cx(styles.input, styles.select, className)} />;
}

type TextFieldProps = Omit<FieldProps, "children"> &
  Omit<ComponentProps<"input">, "onChange"> & { onChange: (text: string) => void };

/** A labelled text input with a hint and an error. */
export const TextField = ({ label, hint, error, required, onChange, ...rest }: TextFieldProps) => (
  <Field label={label} hint={hint} error={error} required={required}>
    {(input) => <Input {...input} {...rest} onChange={({ target }) => onChange(target.value)} />}
  </Field>
);

/** A checkbox, or with `type="radio"` a radio button. */
export function Checkbox({ label, ...rest }: ComponentProps<"input"> & { label: ReactNode }) {
  return (
    <label className={styles.checkbox}>
      <input type="checkbox" {...rest} />
      <span>{label}</span>
    </label>
  );
}
