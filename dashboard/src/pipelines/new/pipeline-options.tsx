import { Checkbox, Field, Input } from "../../ui/field";
import type { Draft } from "./draft";
import styles from "./pipeline-options.module.css";

interface Props {
  draft: Draft;
  problemAt: (place: string) => string | undefined;
  onChange: (change: Partial<Draft>) => void;
}

/** The options of the pipeline as a whole. */
export function PipelineOptions({ draft, problemAt, onChange }: Props) {
  return (
    <div className={styles.options}>
      <Field label="Name" required={false} error={problemAt("name")}>
        {(input) => (
          <Input
            {...input}
            value={draft.name}
            onChange={({ target }) => onChange({ name: target.value })}
          />
        )}
      </Field>
      <Field label="Budget in USD" required={false} error={problemAt("budget_usd")}>
        {(input) => (
          <Input
            {...input}
            inputMode="decimal"
            placeholder="no budget"
            value={draft.budget}
            onChange={({ target }) => onChange({ budget: target.value })}
          />
        )}
      </Field>
      <Field label="Tags" required={false} error={problemAt("tags")} hint="Separated by commas">
        {(input) => (
          <Input
            {...input}
            value={draft.tags}
            onChange={({ target }) => onChange({ tags: target.value })}
          />
        )}
      </Field>
      <div className={styles.wide}>
        <Checkbox
          label="Reuse an earlier artifact if a step has the same inputs"
          checked={draft.reuse}
          onChange={({ target }) => onChange({ reuse: target.checked })}
        />
      </div>
    </div>
  );
}
