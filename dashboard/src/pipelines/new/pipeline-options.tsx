import { Checkbox, TextField } from "../../ui/field";
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
      <TextField
        label="Name"
        required={false}
        error={problemAt("name")}
        value={draft.name}
        onChange={(name) => onChange({ name })}
      />
      <TextField
        label="Budget in USD"
        required={false}
        error={problemAt("budget_usd")}
        inputMode="decimal"
        placeholder="no budget"
        value={draft.budget}
        onChange={(budget) => onChange({ budget })}
      />
      <TextField
        label="Tags"
        required={false}
        error={problemAt("tags")}
        hint="Separated by commas"
        value={draft.tags}
        onChange={(tags) => onChange({ tags })}
      />
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
