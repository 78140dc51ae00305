import type { NewApiKey } from "@forge/sdk";
import { KeyRound } from "lucide-react";
import { useState } from "react";
import { Button } from "../ui/button";
import { Snippet } from "../ui/copy";
import { DialogActions } from "../ui/dialog";
import { Notice } from "../ui/error-banner";
import { Tabs } from "../ui/tabs";
import { keySnippets } from "./key-snippets";
import styles from "./new-key-view.module.css";

/** The only place where a key's text is shown. */
export function NewKeyView({ made, onClose }: { made: NewApiKey; onClose: () => void }) {
  const snippets = keySnippets(made, location.origin);
  const [shown, setShown] = useState(snippets[0]?.id ?? "");
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
      <Tabs
        value={shown}
        onChange={setShown}
        tabs={snippets.map(({ id, title, code }) => ({
          id,
          title,
          content: <Snippet code={code} label={`Copy for ${title}`} />,
        }))}
      />
      <DialogActions>
        <Button kind="primary" onClick={onClose}>
          I have kept it
        </Button>
      </DialogActions>
    </div>
  );
}
