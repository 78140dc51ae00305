import type { DeploymentDetail } from "@forge/sdk";
import { ArrowUp, Square } from "lucide-react";
import { type KeyboardEvent, useRef, useState } from "react";
import { Button } from "../ui/button";
import { CopyButton } from "../ui/copy";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { TextArea } from "../ui/field";
import { formatDuration } from "../ui/format";
import { useHotkeys } from "../ui/hotkeys";
import styles from "./try-it.module.css";
import { type Answer, useAsk } from "./use-ask";

/** Sends a prompt to the model through its stable address and streams the answer. */
export function TryIt({ deployment }: { deployment: DeploymentDetail }) {
  const { answers, ask, stop, clear, isBusy } = useAsk(deployment.deployment_id);
  const [prompt, setPrompt] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  useHotkeys([{ keys: "t", what: "Ask the model", run: () => box.current?.focus() }]);
  if (deployment.status !== "active") {
    return <Empty title="It is stopped: there is no model to ask." />;
  }
  const canSend = prompt.trim() !== "" && !isBusy;
  const send = (): void => {
    if (!canSend) return;
    void ask(prompt.trim());
    setPrompt("");
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape") box.current?.blur();
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <div className={styles.try}>
      {answers.length > 0 && (
        <ol className={styles.answers} aria-label="Questions and answers">
          {answers.map((answer, at) => (
            <Turn key={at} answer={answer} />
          ))}
        </ol>
      )}
      <form
        className={styles.ask}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <TextArea
          ref={box}
          rows={3}
          aria-label="Question to the model"
          placeholder="Ask the model something, e.g. What is 2 + 2?"
          className={styles.box}
          value={prompt}
          onChange={({ target }) => setPrompt(target.value)}
          onKeyDown={onKeyDown}
        />
        <div className={styles.actions}>
          <span className={styles.hint}>
            Enter sends. Each question stands alone; the model sees no earlier one.
          </span>
          {answers.length > 0 && !isBusy && (
            <Button kind="ghost" onClick={clear}>
              Clear
            </Button>
          )}
          {isBusy ? (
            <Button icon={<Square size={12} />} onClick={stop}>
              Stop the answer
            </Button>
          ) : (
            <Button kind="primary" type="submit" icon={<ArrowUp size={14} />} disabled={!canSend}>
              Ask
            </Button>
          )}
        </div>
      </form>
    </div>
  );
}

function Turn({ answer }: { answer: Answer }) {
  const { prompt, text, state, error } = answer;
  return (
    <li className={styles.turn}>
      <p className={styles.prompt}>{prompt}</p>
      <div aria-live="polite" aria-busy={state === "waiting" || state === "streaming"}>
        {text !== "" && <p className={styles.text}>{text}</p>}
        {state === "waiting" && <p className="quiet">Waiting for the first word …</p>}
        {state === "done" && text === "" && (
          <p className="quiet">The server sent no text. It may not speak OpenAI's chat protocol.</p>
        )}
        {error !== undefined && <ErrorBanner what="The model did not answer" error={error} />}
      </div>
      {(state === "done" || state === "stopped") && (
        <p className={styles.numbers}>
          {state === "stopped" && "Stopped by you. "}
          {answer.firstMs !== undefined && `First word after ${formatDuration(answer.firstMs)}, `}
          {answer.firstMs === undefined ? "Ended" : "ended"} after {formatDuration(answer.totalMs)}
          {text !== "" && <CopyButton text={text} label="Copy the answer" />}
        </p>
      )}
    </li>
  );
}
