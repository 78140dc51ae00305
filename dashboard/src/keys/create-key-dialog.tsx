import type { NewApiKey } from "@forge/sdk";
import { useState } from "react";
import { useSigned } from "../api/context";
import { describeError } from "../api/errors";
import { Dialog, DialogForm } from "../ui/dialog";
import { ErrorBanner } from "../ui/error-banner";
import { Checkbox, Field, Select, TextField } from "../ui/field";
import styles from "./create-key-dialog.module.css";
import { EXPIRIES, type Expiry, expiryDate } from "./expiry";
import { SCOPES, type Scope } from "./key-state";
import { NewKeyView } from "./new-key-view";
import { useCreateKey } from "./use-keys";

export function CreateKeyDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [made, setMade] = useState<NewApiKey>();
  const close = (): void => {
    setMade(undefined);
    onClose();
  };
  return (
    <Dialog
      open={open}
      onClose={close}
      title={made ? "Copy your key now" : "Create a key"}
      wide
      ignoresAccidentalClose={made !== undefined}
    >
      {made ? (
        <NewKeyView made={made} onClose={close} />
      ) : (
        <CreateForm onClose={close} onMade={setMade} />
      )}
    </Dialog>
  );
}

const MAX_NAME = 128;

function problemOfName(name: string): string | undefined {
  if (name === "") return "Give it a name: jobs made with it carry it.";
  return name.length > MAX_NAME
    ? `At most ${MAX_NAME} characters: these are ${name.length}.`
    : undefined;
}

interface FormProps {
  onClose: () => void;
  onMade: (key: NewApiKey) => void;
}

function CreateForm({ onClose, onMade }: FormProps) {
  const { session } = useSigned();
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("user");
  const [expiry, setExpiry] = useState<Expiry>("90");
  const [day, setDay] = useState("");
  const [isForOne, setForOne] = useState(true);
  const [wasSent, setSent] = useState(false);
  const create = useCreateKey(onMade);
  const refused = create.error ? describeError(create.error) : undefined;
  const expiresAt = expiryDate(expiry, day);
  const problems = {
    name: problemOfName(name.trim()),
    expires_at: expiresAt === "invalid" ? "A day after today." : undefined,
  };
  const errorOf = (field: "name" | "expires_at"): string | undefined =>
    (wasSent ? problems[field] : undefined) ??
    (refused?.param === field ? refused.atField : undefined);
  const submit = (): void => {
    setSent(true);
    if (problems.name || expiresAt === "invalid") return;
    const workers = scope === "worker" && isForOne ? 1 : undefined;
    create.mutate({ name: name.trim(), scope, expiresAt, workers });
  };
  return (
    <DialogForm
      onSubmit={submit}
      onCancel={onClose}
      action="Create the key"
      busy={create.isPending}
      noValidate
    >
      <TextField
        label="Name"
        required
        error={errorOf("name")}
        hint={`Who or what uses it, such as ci. At most ${MAX_NAME} characters.`}
        value={name}
        onChange={setName}
      />
      <ScopeChoice scope={scope} isAdmin={session.scope === "admin"} onChange={setScope} />
      {scope === "worker" && (
        <Checkbox
          label="For one machine only: the first worker that registers with it keeps it."
          checked={isForOne}
          onChange={({ target }) => setForOne(target.checked)}
        />
      )}
      <div className={styles.pair}>
        <Field label="Expires" error={expiry === "day" ? undefined : errorOf("expires_at")}>
          {(input) => (
            <Select
              {...input}
              value={expiry}
              onChange={({ target }) => setExpiry(target.value as Expiry)}
            >
              {EXPIRIES.map(({ value, text }) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {expiry === "day" && (
          <TextField
            label="On the day"
            required
            error={errorOf("expires_at")}
            type="date"
            value={day}
            onChange={setDay}
          />
        )}
      </div>
      {refused && refused.param !== "name" && refused.param !== "expires_at" && (
        <ErrorBanner what="The key was not created" error={create.error} />
      )}
    </DialogForm>
  );
}

interface ScopeProps {
  scope: Scope;
  isAdmin: boolean;
  onChange: (scope: Scope) => void;
}

function ScopeChoice({ scope, isAdmin, onChange }: ScopeProps) {
  const offered: readonly Scope[] = isAdmin ? ["user", "worker", "admin"] : ["user", "worker"];
  return (
    <fieldset className={styles.scopes}>
      <legend className={styles.legend}>Scope</legend>
      {offered.map((each) => (
        <Checkbox
          key={each}
          type="radio"
          label={
            <>
              <strong>{each}</strong>
              <span className="note">{SCOPES[each]}</span>
            </>
          }
          name="scope"
          value={each}
          checked={scope === each}
          onChange={() => onChange(each)}
        />
      ))}
    </fieldset>
  );
}
