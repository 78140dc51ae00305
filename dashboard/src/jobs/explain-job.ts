import type { Attempt } from "@forge/sdk";
import type { Explanation } from "../ui/detail";
import { formatDuration, inOneDirection, plural, sentence } from "../ui/format";
import type { JobData } from "./job-data";

export interface JobExplanation extends Explanation {
  /** The page or tab that the explanation's button opens, where the user can act. */
  goTo?: "log" | "artifacts" | "workers";
}

export function explainJob(job: JobData, attempts: readonly Attempt[]): JobExplanation {
  if (job.stuck) {
    return {
      tone: "warn",
      why: `Forge has tried ${plural(job.stuck.tries, "time")} to write the job's end and could not.`,
      next: "It keeps trying. The operator can see why in the server's log.",
    };
  }
  switch (job.raw_status) {
    case "completed":
      return completed(job);
    case "failed":
      return failed(job);
    case "running":
      return running(job, attempts);
    case "assigned":
      return {
        tone: "neutral",
        why: `Worker ${job.worker_id} was chosen and is about to fetch the job.`,
        next: "If it does not within 15 s, the job goes back to the queue.",
      };
    default:
      return waiting(job);
  }
}

function waiting({ pending_reason: reason }: JobData): JobExplanation {
  if (!reason) {
    return {
      tone: "neutral",
      why: "The job has just been queued.",
      next: "A worker is being chosen.",
    };
  }
  const why = sentence(reason.message);
  const seeWorkers = (tone: "neutral" | "warn", next: string): JobExplanation => ({
    tone,
    why,
    next,
    goTo: "workers",
  });
  const place =
    reason.queue_position === null ? "" : ` It is number ${reason.queue_position} in the queue.`;
  switch (reason.code) {
    case "no_worker":
      return seeWorkers("warn", "Start an agent, or add a machine over SSH.");
    case "no_worker_fits":
      return seeWorkers(
        "warn",
        "Add a worker that fits, or cancel the job and submit it with smaller requirements.",
      );
    case "no_worker_available":
      return seeWorkers("warn", "See what is wrong with the workers that fit.");
    case "provisioning":
      return seeWorkers("neutral", "The job starts when the machine is ready.");
    case "workers_busy":
    case "over_share":
      return seeWorkers("neutral", `It starts by itself when a worker is free.${place}`);
    default:
      return { tone: "neutral", why, next: "No action is needed: this takes a moment." };
  }
}

function running(job: JobData, attempts: readonly Attempt[]): JobExplanation {
  if (attempts.at(-1)?.outcome === "completed") {
    return {
      tone: "neutral",
      why: "The worker has delivered its result.",
      next: "Forge writes the bill and the manifest; then the job is completed.",
    };
  }
  if (job.cancel_requested_at) {
    return {
      tone: "warn",
      why: `${inOneDirection(job.cancelled_by ?? "Someone")} has cancelled the job, and its worker has been told.`,
      next: "It ends when the worker has stopped, after 20 s at the latest.",
    };
  }
  const again = job.attempts > 1 ? ` This is attempt ${job.attempts} of ${job.max_attempts}.` : "";
  const lost =
    attempts.at(-2)?.outcome === "worker_lost" ? " The worker of the one before was lost." : "";
  return {
    tone: "neutral",
    why: `Worker ${job.worker_id} runs the job.${again}${lost}`,
    next: `It may take up to ${formatDuration(job.timeout_s * 1000)} per attempt. Its log shows what it does.`,
    goTo: "log",
  };
}

function completed(job: JobData): JobExplanation {
  const took =
    job.started_at && job.completed_at
      ? Date.parse(job.completed_at) - Date.parse(job.started_at)
      : null;
  const tries = job.attempts > 1 ? `, at attempt ${job.attempts}` : "";
  return {
    tone: "ok",
    why: `Worker ${job.worker_id} completed the job in ${formatDuration(took)}${tries}.`,
    next: "Its output is registered, with a manifest that says where it came from.",
    goTo: "artifacts",
  };
}

function failed(job: JobData): JobExplanation {
  const error = sentence(job.error ?? "No reason was given.");
  switch (job.error_code) {
    case "cancelled":
      return {
        tone: "neutral",
        why: job.cancelled_by
          ? `The job was cancelled by ${inOneDirection(job.cancelled_by)}.`
          : "The job was cancelled.",
        next: "Retry submits the same again.",
      };
    case "worker_lost":
      return {
        tone: "danger",
        why: `Its worker stopped sending heartbeats in each of ${plural(job.attempts, "attempt")}.`,
        next: "See whether the workers run out of memory or lose their network, then retry.",
        goTo: "workers",
      };
    case "timeout":
      return {
        tone: "danger",
        why: `It ran longer than its limit of ${formatDuration(job.timeout_s * 1000)} per attempt.`,
        next: "See in the log where the time went, or submit it with a larger timeout_s.",
        goTo: "log",
      };
    case "bootstrap_failed":
      return {
        tone: "danger",
        why: error,
        next: "Repair the machine and set it up again, then retry.",
        goTo: "workers",
      };
    case "artifact_conflict":
      return {
        tone: "danger",
        why: error,
        next: "Have the worker use another artifact id, then retry.",
      };
    default:
      return {
        tone: "danger",
        why: `The worker said: ${error}`,
        next: "Read the end of its log. Retry submits the same again; a clone can be changed first.",
        goTo: "log",
      };
  }
}
