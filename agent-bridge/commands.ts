import { z } from "zod";
import type { HeartbeatState } from "../services/fleet/heartbeats";

/** What the control plane asks of a worker, in answers to its heartbeats and polls (contract.md, Workers). */
export const commandSchema = z
  .discriminatedUnion("type", [
    z.object({
      type: z.literal("cancel_job").describe("stop it, and report what it used"),
      job_id: z.string(),
    }),
    z.object({
      type: z.literal("job_lost").describe("the job is no longer this worker's: stop it"),
      job_id: z.string(),
      attempt: z
        .int()
        .optional()
        .describe("which one, if the worker told: it may have another by now"),
    }),
    z.object({
      type: z.literal("stop_deployment").describe("end what it serves: nobody needs it any more"),
      deployment_id: z.string(),
    }),
    z.object({ type: z.literal("drain").describe("finish the job, and take no other") }),
  ])
  .meta({ id: "Command" });

export type Command = z.infer<typeof commandSchema>;

/** What a worker tells of its job. */
interface Running {
  job_id?: string | null | undefined;
  attempt?: number | null | undefined;
}

/**
 * Commands for a worker that was just heard; `toStop` are deployments that it serves and should not.
 */
export function commandsFor(heard: HeartbeatState, running: Running, toStop: string[]): Command[] {
  const commands: Command[] = toStop.map((id) => ({ type: "stop_deployment", deployment_id: id }));
  if (heard.draining) commands.push({ type: "drain" });
  if (heard.held_cancelled && heard.held_job_id !== null) {
    commands.push({ type: "cancel_job", job_id: heard.held_job_id });
  }
  if (running.job_id && !holds(heard, running)) {
    const { job_id, attempt } = running;
    commands.push({ type: "job_lost", job_id, ...(attempt == null ? {} : { attempt }) });
  }
  return commands;
}

/** Whether the worker holds the attempt that it says it runs. */
export const holds = (heard: HeartbeatState, { job_id, attempt }: Running): boolean =>
  heard.held_job_id === job_id && (attempt == null || heard.held_attempt === attempt);
