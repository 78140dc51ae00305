import { ApplicationFailure, CompleteAsyncError } from "@temporalio/activity";
import type { ActivityInterceptorsFactory } from "@temporalio/worker";
import type { Context } from "../services/context";
import { deleteStuckWrites, recordStuckWrite } from "../services/temporal/stuck-writes";
import { isNotYet } from "./context";

/** Maximum length of a stored error text. Longer texts are truncated. */
const MAX_ERROR_CHARACTERS = 2_000;
/**
 * A try that takes longer than this is recorded before it ends. Most tries take a few milliseconds.
 */
const SLOW_MS = 2_000;

/** Records activities that keep failing, so that a write that can never succeed is noticed. */
export function recordStuckWrites(ctx: Context): ActivityInterceptorsFactory {
  return ({ info }) => {
    const workflowId = info.workflowExecution?.workflowId;
    const write = { workflow_id: workflowId ?? "", activity: info.activityType };
    // Local activities are ignored: a failed one is repeated as a regular activity, whose attempts
    // are counted from 1.
    const isStuck = !info.isLocal && info.attempt >= ctx.config.temporal.stuckAfterTries;

    async function record(error: unknown): Promise<void> {
      const failing = {
        ...write,
        error: String(error).slice(0, MAX_ERROR_CHARACTERS),
        tries: info.attempt,
        since: new Date(info.scheduledTimestampMs),
      };
      ctx.logger.error({ ...failing, error: undefined, err: failing.error }, "a write is stuck");
      await recordStuckWrite(ctx.pool, failing);
    }

    /**
     * Records a slow try while it runs, because a try that hangs or kills its process never fails.
     * @returns a function that stops the recording and waits for a write that has started.
     */
    function recordIfSlow(): () => Promise<void> {
      let written = Promise.resolve();
      const timer = setTimeout(() => {
        written = record(`try ${info.attempt} has not answered yet`).catch(() => undefined);
      }, SLOW_MS);
      return async () => {
        clearTimeout(timer);
        await written;
      };
    }

    return {
      inbound: {
        async execute(input, next) {
          if (!isStuck || workflowId === undefined) return await next(input);
          const clear = () => deleteStuckWrites(ctx.pool, workflowId, info.activityType);
          const stopRecording = recordIfSlow();
          // Errors of the recording itself are ignored, for example while the database is down. If
          // the activity fails again, its next try is recorded.
          try {
            const result = await next(input);
            await stopRecording();
            await clear().catch(() => undefined);
            return result;
          } catch (error) {
            await stopRecording();
            await (isStillStuck(error) ? record(error) : clear()).catch(() => undefined);
            throw error;
          }
        },
      },
    };
  };
}

/**
 * True if the activity will be retried because of an error. False if it waits for an event, or has
 * failed for good.
 */
function isStillStuck(error: unknown): boolean {
  if (error instanceof CompleteAsyncError || isNotYet(error)) return false;
  return !(error instanceof ApplicationFailure && error.nonRetryable);
}
