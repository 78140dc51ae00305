import { CompleteAsyncError } from "@temporalio/activity";
import type { ActivityInterceptorsFactory } from "@temporalio/worker";
import type { Context } from "../services/context";
import { forgetStuckWrites, noteStuckWrite } from "../services/jobs/stuck-writes";
import { isNotYet } from "./context";

/** Half a page of an error says what is wrong. */
const MOST_CHARACTERS = 2_000;
/** Most writes take some milliseconds. */
const SLOW_MS = 2_000;

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

    /**
     * A try that hangs, or ends its process, never fails: so it is noted while it goes on.
     *
     * @returns ends that; what was begun is written then.
     */
    function noteIfSlow(): () => Promise<void> {
      let noted = Promise.resolve();
      const timer = setTimeout(() => {
        noted = note(`try ${info.attempt} has not answered yet`).catch(() => undefined);
      }, SLOW_MS);
      return async () => {
        clearTimeout(timer);
        await noted;
      };
    }

    return {
      inbound: {
        async execute(input, next) {
          if (!isStuck || workflowId === undefined) return await next(input);
          const worked = () => forgetStuckWrites(ctx.pool, workflowId, info.activityType);
          const endNoting = noteIfSlow();
          // With the database away there is nothing to be noted; the next try notes it.
          try {
            const result = await next(input);
            await endNoting();
            await worked().catch(() => undefined);
            return result;
          } catch (error) {
            await endNoting();
            const isWell = error instanceof CompleteAsyncError || isNotYet(error);
            await (isWell ? worked() : note(error)).catch(() => undefined);
            throw error;
          }
        },
      },
    };
  };
}
