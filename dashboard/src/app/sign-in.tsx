import { KeyRound } from "lucide-react";
import { type FormEvent, useEffect, useState } from "react";
import { describeError, isKeyRefused } from "../api/errors";
import type { SessionStore } from "../api/session";
import { SignInRefused } from "../api/session";
import { Button } from "../ui/button";
import { Snippet } from "../ui/copy";
import { Notice } from "../ui/error-banner";
import { TextField } from "../ui/field";
import { Logo } from "./logo";
import styles from "./sign-in.module.css";

const FIND_A_KEY = `node -p 'require("./.forge/stack.json").user_api_key'`;

export function SignIn({
  sessions,
  notice,
}: {
  sessions: SessionStore;
  notice: string | undefined;
}) {
  const [key, setKey] = useState("");
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Sign in · Forge";
  }, []);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await sessions.signIn(key);
    } catch (reason) {
      setError(sentenceFor(reason));
      setBusy(false);
    }
  };
  return (
    <main className={styles.page}>
      <div className={styles.panel}>
        <Logo />
        <div>
          <h1>Sign in</h1>
          <p className={styles.text}>Paste a user key or an admin key of your tenant.</p>
        </div>
        {notice && (
          <Notice tone="warn" icon={<KeyRound size={15} />}>
            {notice}
          </Notice>
        )}
        <form onSubmit={submit} className={styles.form}>
          <TextField
            label="API key"
            error={error}
            hint={
              key.trim().startsWith("forge_admin_")
                ? "This is an admin key: it sees and changes all tenants. A user key is enough for your own jobs."
                : "Kept in this tab until you sign out or close it."
            }
            type="password"
            name="api-key"
            placeholder="forge_user_…"
            spellCheck={false}
            autoFocus
            value={key}
            onChange={setKey}
          />
          <Button kind="primary" type="submit" busy={isBusy} disabled={key.trim() === ""}>
            {isBusy ? "Checking the key …" : "Sign in"}
          </Button>
        </form>
        <div className={styles.help}>
          <p>
            With a stack from <code>npm start</code>, this prints a key:
          </p>
          <Snippet code={FIND_A_KEY} label="Copy the command" />
        </div>
      </div>
    </main>
  );
}

function sentenceFor(reason: unknown): string {
  if (reason instanceof SignInRefused) return reason.message;
  if (isKeyRefused(reason)) {
    return "Forge does not accept this key. It may be mistyped, expired or revoked.";
  }
  return describeError(reason).message;
}
