import { CompleteAsyncError } from "@temporalio/activity";
import type { ActivityInterceptorsFactory } from "@temporalio/worker";
import type { Context } from "../infra/context";
import { forgetStuckWrites, noteStuckWrite } from "../infra/database/stuck-writes";

/** Half a page of an error says what is wrong. */
const MOST_CHARACTERS = 2_000;

/**
 * Notes the activities that fail again and again, and are still tried: an outage passes, but what can never
 * be written would otherwise be tried for ever and be seen by nobody.
 */
export function notingStuckWrites(ctx: Context): ActivityInterceptorsFactory {
  return ({ info }) => {
    const workflowId = info.workflowExecution?.workflowId;
    const write = { workflow_id: workflowId ?? "", activity: info.activityType };
    // A local one is followed by a regular one, whose tries are counted anew.
    const isStuck = !info.isLocal && info.attempt >= ctx.config.temporal.stuckAfterTries;

    async function note(error: unknown): Promise<void> {
      const failing = {
        ...write,
        error: String(error).slice(0, MOST_CHARACTERS),
        tries: info.attempt,
        since: new Date(info.scheduledTimestampMs),
      };
      ctx.logger.error({ ...failing, error: undefined, err: failing.error }, "a write is stuck");
      await noteStuckWrite(ctx.pool, failing);
    }

    return {
      inbound: {
        async execute(input, next) {
          if (!isStuck || workflowId === undefined) return await next(input);
          const worked = () => forgetStuckWrites(ctx.pool, workflowId, info.activityType);
          // With the database away there is nothing to be noted; the next try notes it.
          try {
            const result = await next(input);
            await worked().catch(() => undefined);
            return result;
          } catch (error) {
            const isParked = error instanceof CompleteAsyncError;
            await (isParked ? worked() : note(error)).catch(() => undefined);
            throw error;
          }
        },
      },
    };
  };
}
