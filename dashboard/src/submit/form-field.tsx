import { Upload } from "lucide-react";
import { type ReactElement, useState } from "react";
import type { JobType } from "../jobs/declared-types";
import { Button } from "../ui/button";
import { Field, type FieldInput, Input, TextArea } from "../ui/field";
import { ArtifactPicker } from "./artifact-picker";
import { type ArtifactSource, sourceOf } from "./artifact-source";
import { type FormFieldSchema, hintOf, labelOf } from "./fields";
import styles from "./form-field.module.css";
import { UploadDialog } from "./upload-dialog";

interface Props {
  type: JobType;
  field: FormFieldSchema;
  value: string;
  error: string | undefined;
  onChange: (text: string) => void;
}

/** The input for a field's schema: text, number, list, JSON, or one of the tenant's artifacts. */
export function FormField({ type, field, value, error, onChange }: Props) {
  const source = sourceOf(type, field.name);
  const isObject = field.type === "object";
  const isText = field.name === "notes";
  const isWide = isObject || isText || source !== undefined || field.name === "tags";
  const common = (input: FieldInput) => ({
    ...input,
    name: field.name,
    value,
    placeholder: placeholderOf(field),
    spellCheck: false,
    onChange: ({ target }: { target: { value: string } }) => onChange(target.value),
  });
  const control = (input: FieldInput): ReactElement => {
    if (source) {
      return (
        <WithUpload source={source} onChange={onChange}>
          <ArtifactPicker source={source} input={input} value={value} onChange={onChange} />
        </WithUpload>
      );
    }
    if (isObject || isText) return <TextArea {...common(input)} rows={isObject ? 4 : 2} />;
    if (field.type === "integer") return <Input {...common(input)} inputMode="numeric" />;
    return <Input {...common(input)} />;
  };
  return (
    <div className={isWide ? styles.wide : undefined} data-field={field.name}>
      <Field
        label={labelOf(field.name)}
        required={field.required}
        hint={isObject ? `${hintOf(field)}. A JSON object.` : hintOf(field)}
        error={error}
      >
        {control}
      </Field>
    </div>
  );
}

function placeholderOf({ name, default: fallback }: FormFieldSchema): string | undefined {
  if (name === "params") return '{"lr": 0.0001}';
  return typeof fallback === "number" ? String(fallback) : undefined;
}

interface UploadProps {
  source: ArtifactSource;
  onChange: (text: string) => void;
  children: ReactElement;
}

/** Adds an upload button to a field that takes a dataset. */
function WithUpload({ source, onChange, children }: UploadProps) {
  const [isOpen, setOpen] = useState(false);
  if (source.type !== "dataset") return children;
  return (
    <div className={styles.withUpload}>
      {children}
      <Button icon={<Upload size={14} />} onClick={() => setOpen(true)}>
        Upload
      </Button>
      <UploadDialog
        open={isOpen}
        onClose={() => setOpen(false)}
        onDone={(dataset) => {
          onChange(source.takes === "id" ? dataset.dataset_id : dataset.dataset_uri);
          setOpen(false);
        }}
      />
    </div>
  );
}
