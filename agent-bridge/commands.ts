import { z } from "zod";
import type { HeartbeatState } from "../services/fleet/heartbeats";

/** A command to a worker, in responses to its heartbeats and polls (contract.md, Workers). */
export const commandSchema = z
  .discriminatedUnion("type", [
    z.object({
      type: z.literal("cancel_job").describe("stop the job, and report its usage"),
      job_id: z.string(),
    }),
    z.object({
      type: z.literal("job_lost").describe("the job is no longer this worker's: stop it"),
      job_id: z.string(),
      attempt: z
        .int()
        .optional()
        .describe(
          "the attempt to stop, if the heartbeat named one; a newer attempt of the same job goes on",
        ),
    }),
    z.object({
      type: z
        .literal("stop_deployment")
        .describe("the worker must stop serving this deployment, which is no longer needed"),
      deployment_id: z.string(),
    }),
    z.object({ type: z.literal("drain").describe("finish the job, and take no other") }),
  ])
  .meta({ id: "Command" });

export type Command = z.infer<typeof commandSchema>;

/** The attempt that a worker says it runs. */
interface Running {
  job_id?: string | null | undefined;
  attempt?: number | null | undefined;
}

/**
 * Returns the commands for a worker.
 * @param state the worker's state after its heartbeat.
 * @param running the attempt that the worker says it runs.
 * @param toStop deployments that the worker serves but should not serve.
 */
export function commandsFor(state: HeartbeatState, running: Running, toStop: string[]): Command[] {
  const commands: Command[] = toStop.map((id) => ({ type: "stop_deployment", deployment_id: id }));
  if (state.draining) commands.push({ type: "drain" });
  if (state.held_cancelled && state.held_job_id !== null) {
    commands.push({ type: "cancel_job", job_id: state.held_job_id });
  }
  if (running.job_id && !holds(state, running)) {
    const { job_id, attempt } = running;
    commands.push({ type: "job_lost", job_id, ...(attempt == null ? {} : { attempt }) });
  }
  return commands;
}

/** Whether the attempt that the worker says it runs is assigned to it. */
export const holds = (state: HeartbeatState, { job_id, attempt }: Running): boolean =>
  state.held_job_id === job_id && (attempt == null || state.held_attempt === attempt);
