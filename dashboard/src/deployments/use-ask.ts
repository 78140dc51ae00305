import { useEffect, useRef, useState } from "react";
import { useForge } from "../api/context";

export interface Answer {
  prompt: string;
  text: string;
  state: "waiting" | "streaming" | "done" | "stopped" | "failed";
  error?: unknown;
  /** Time from the request to the first piece of the answer. */
  firstMs?: number;
  /** Time from the request to the end of the answer. */
  totalMs?: number;
}

interface Chunk {
  choices?: { delta?: { content?: string | null } }[];
  error?: { message?: string } | string;
}

/** Sends prompts to a deployed model, one at a time, by OpenAI's protocol. Streams the answers. */
export function useAsk(deploymentId: string) {
  const forge = useForge();
  const [answers, setAnswers] = useState<readonly Answer[]>([]);
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);

  const change = (values: Partial<Answer>): void =>
    setAnswers((all) => [...all.slice(0, -1), { ...(all.at(-1) as Answer), ...values }]);

  const ask = async (prompt: string): Promise<void> => {
    const controller = new AbortController();
    current.current = controller;
    const startMs = performance.now();
    const elapsed = (): number => performance.now() - startMs;
    setAnswers((all) => [...all, { prompt, text: "", state: "waiting" }]);
    // In the reference handler of `deploy`, the model's name is the deployment's id.
    const body = {
      model: deploymentId,
      messages: [{ role: "user", content: prompt }],
      stream: true,
    };
    let text = "";
    try {
      const events = forge.deployments.stream(deploymentId, "chat/completions", body, {
        signal: controller.signal,
      });
      for await (const { data } of events) {
        if (data === "[DONE]") break;
        const piece = pieceOf(JSON.parse(data) as Chunk);
        if (piece === "") continue;
        if (text === "") change({ firstMs: elapsed() });
        text += piece;
        change({ text, state: "streaming" });
      }
      change({ state: "done", totalMs: elapsed() });
    } catch (error) {
      const state = controller.signal.aborted ? "stopped" : "failed";
      change({ state, totalMs: elapsed(), ...(state === "failed" ? { error } : {}) });
    }
  };

  return {
    answers,
    ask,
    stop: (): void => current.current?.abort(),
    clear: (): void => setAnswers([]),
    isBusy: ["waiting", "streaming"].includes(answers.at(-1)?.state ?? ""),
  };
}

function pieceOf({ choices, error }: Chunk): string {
  if (error) throw new Error(typeof error === "string" ? error : (error.message ?? "no answer"));
  return choices?.[0]?.delta?.content ?? "";
}
