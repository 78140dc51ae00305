import type { WorkerDetail } from "@forge/sdk";
import type { Explanation } from "../ui/detail";
import { sentence } from "../ui/format";

export function explainWorker(worker: WorkerDetail): Explanation {
  const reason = worker.status_reason ? ` ${sentence(worker.status_reason)}` : "";
  switch (worker.status) {
    case "bootstrapping":
      return {
        tone: "neutral",
        why: "The machine is being set up.",
        next: "It takes jobs when all steps below are done.",
      };
    case "dead":
      return {
        tone: "danger",
        why: `No heartbeat has arrived for too long.${reason}`,
        next: "Its job went to another worker. It comes back with its next heartbeat: see whether the agent runs and reaches this server.",
      };
    case "error":
      return inError(worker, reason);
    default:
      if (worker.draining) {
        return {
          tone: "warn",
          why: "It is draining.",
          next: "It finishes its job and takes no other, until it is undrained or its agent restarts.",
        };
      }
      return worker.status === "busy"
        ? { tone: "neutral", why: "It runs a job.", next: "" }
        : { tone: "ok", why: "It is idle and asks for work.", next: "" };
  }
}

function inError({ error_code: code }: WorkerDetail, reason: string): Explanation {
  const next: Record<string, string> = {
    reported: "Fix what it reports, then restart its agent.",
    failing: "See the logs of its last jobs. Restart its agent, or have an admin reset it.",
    unresponsive: "It comes back by itself when it asks for work; else restart its agent.",
    bootstrap_failed: "Fix what the failed step below says, then set it up again.",
  };
  const what: Record<string, string> = {
    reported: "The worker reported an error.",
    failing: "Three attempts in a row failed on it while other workers succeeded.",
    unresponsive: "It sends heartbeats but does not act on commands.",
    bootstrap_failed: "Setting it up failed.",
  };
  return {
    tone: "danger",
    why: `${what[code ?? ""] ?? "It is out of service."}${reason}`,
    next: next[code ?? ""] ?? "Restart its agent.",
  };
}
