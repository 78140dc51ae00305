import type { NewApiKey } from "@forge/sdk";
import { KeyRound } from "lucide-react";
import { Button } from "../ui/button";
import { CodeTabs } from "../ui/code-tabs";
import { Snippet } from "../ui/copy";
import { DialogActions } from "../ui/dialog";
import { Notice } from "../ui/error-banner";
import { keySnippets } from "./key-snippets";
import styles from "./new-key-view.module.css";

/** The only place where a key's secret value is shown. */
export function NewKeyView({ made, onClose }: { made: NewApiKey; onClose: () => void }) {
  return (
    <div className={styles.view}>
      <Notice tone="warn" icon={<KeyRound size={15} />}>
        <strong>Forge does not show this key again.</strong> It keeps a digest only. If the key is
        lost, revoke it and create another.
      </Notice>
      <div>
        <h3>{made.name}</h3>
        <Snippet code={made.key ?? ""} label="Copy the key" />
      </div>
      <CodeTabs codes={keySnippets(made, location.origin)} copy="Copy for" />
      <DialogActions>
        <Button kind="primary" onClick={onClose}>
          I have kept it
        </Button>
      </DialogActions>
    </div>
  );
}
