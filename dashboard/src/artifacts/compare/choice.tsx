import { useState } from "react";
import { ArtifactPicker } from "../../submit/artifact-picker";
import { Field } from "../../ui/field";

interface Props {
  label: string;
  id: string | undefined;
  onChoose: (id: string) => void;
}

/** Chooses an artifact: the user picks it from the list, or types its id and presses Enter. */
export function Choice({ label, id = "", onChoose }: Props) {
  const [text, setText] = useState(id);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") onChoose(text.trim());
      }}
    >
      <Field label={label}>
        {(input) => (
          <ArtifactPicker
            source={{ type: "artifact", takes: "id" }}
            input={input}
            value={text}
            onChange={setText}
            onChoose={onChoose}
          />
        )}
      </Field>
    </form>
  );
}
