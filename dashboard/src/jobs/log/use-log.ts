import { useEffect, useRef, useState } from "react";
import { useSigned } from "../../api/context";
import { startWorker } from "../../app/trusted";
import workerUrl from "./log.worker?worker&url";
import type { FromWorker, LogState, ToWorker } from "./protocol";
import type { FoundLines } from "./search-lines";

type Answer<Type> = Extract<FromWorker, { type: Type }>;

/** A log in its own web worker, so that reading, searching and indexing never block the page. */
export class LogClient {
  private readonly worker = startWorker(workerUrl);
  private readonly waiting = new Map<number, (answer: FromWorker) => void>();
  private lastId = 0;

  constructor(url: string, apiKey: string, onState: (state: LogState) => void) {
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (data.type === "state") return onState(data.state);
      this.waiting.get(data.id)?.(data);
      this.waiting.delete(data.id);
    };
    this.send({ type: "open", url, apiKey });
  }

  lines(from: number, to: number): Promise<Answer<"lines">> {
    return this.ask((id) => ({ type: "lines", id, from, to }));
  }

  search(query: string): Promise<Answer<"found">> {
    return this.ask((id) => ({ type: "search", id, query }));
  }

  bytes(): Promise<Answer<"bytes">> {
    return this.ask((id) => ({ type: "bytes", id }));
  }

  setLive(isLive: boolean): void {
    this.send({ type: "live", isLive });
  }

  close(): void {
    this.worker.terminate();
  }

  private ask<T extends FromWorker>(question: (id: number) => ToWorker): Promise<T> {
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve as (answer: FromWorker) => void);
      this.send(question(id));
    });
  }

  private send(message: ToWorker): void {
    this.worker.postMessage(message);
  }
}

/** Opens the log of an attempt. @param isLive whether more lines may arrive. */
export function useLog(jobId: string, attempt: number, isLive: boolean) {
  const { session } = useSigned();
  const [state, setState] = useState<LogState>();
  const [client, setClient] = useState<LogClient>();
  useEffect(() => {
    const path = `/api/jobs/${encodeURIComponent(jobId)}/logs?attempt=${attempt}`;
    const opened = new LogClient(new URL(path, location.origin).href, session.key, setState);
    setState(undefined);
    setClient(opened);
    return () => opened.close();
  }, [jobId, attempt, session.key]);
  const isVisible = useVisible();
  useEffect(() => client?.setLive(isLive && isVisible), [client, isLive, isVisible]);
  return { state, client };
}

/** The matching lines. Searches again when the log has grown. */
export function useFound(
  client: LogClient | undefined,
  state: LogState | undefined,
  query: string,
) {
  const [found, setFound] = useState<FoundLines>();
  // A tail's line numbers don't count from the log's start, so search only in a fully loaded log.
  const lines = state && !state.isTail ? state.lines : 0;
  const latest = useRef(0);
  useEffect(() => {
    latest.current += 1;
    const mine = latest.current;
    // There is nothing to search. Drops the previous matches, which may be of another attempt.
    if (!client || query === "" || lines === 0) {
      setFound(undefined);
      return;
    }
    const timer = setTimeout(async () => {
      const answer = await client.search(query);
      if (mine === latest.current) setFound(answer);
    }, 120);
    return () => clearTimeout(timer);
  }, [client, query, lines]);
  return found;
}

function useVisible(): boolean {
  const [isVisible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const onChange = (): void => setVisible(!document.hidden);
    document.addEventListener("visibilitychange", onChange);
    return () => document.removeEventListener("visibilitychange", onChange);
  }, []);
  return isVisible;
}
