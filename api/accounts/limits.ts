import { z } from "zod";
import type { CapName } from "../../platform/config/limits";
import { type Route, route } from "../../platform/http/route";
import {
  countKeys,
  countQueuedByGroup,
  countWorkers,
  sumStoredBytes,
} from "../../services/accounts/quotas";
import { countSpentTokens } from "../../services/accounts/rate-buckets";
import { countSessions } from "../../services/accounts/sessions";
import type { Context } from "../../services/context";
import { tenantOf, tenantQuery } from "./tenant-filter";

const limitSchema = z
  .object({
    name: z.string(),
    limit: z.int().nullable().describe("null: unlimited"),
    used: z
      .int()
      .nullable()
      .describe("null for `requests_per_minute`, whose usage is counted in `request_burst`"),
    variable: z.string().describe("the server's environment variable that sets the limit"),
  })
  .meta({ id: "Limit" });

export function limitsRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/limits"],
    scope: "user",
    operationId: "getLimits",
    tag: "Keys",
    summary: "Read your limits and their usage",
    description:
      "A request over a limit gets 429 or, if waiting doesn't help, 409 `quota_exceeded`; `details` " +
      "has `cap`, `limit` and `used`. Waiting requests and open uploads are counted only in the " +
      "server process that answers.",
    query: z.strictObject(tenantQuery),
    responses: {
      200: { description: "each limit", schema: z.object({ limits: z.array(limitSchema) }) },
    },
    async handle({ principal, query }) {
      const { rate, caps } = ctx.config.limits;
      const userId = tenantOf(principal, query.user_id);
      const used = await usageOf(ctx, userId);
      const spent = await countSpentTokens(ctx.pool, userId, rate.burst, rate.perMinute / 60);
      return {
        limits: [
          {
            name: "requests_per_minute",
            limit: rate.perMinute,
            used: null,
            variable: "FORGE_RATE_LIMIT_PER_MINUTE",
          },
          {
            name: "request_burst",
            limit: rate.burst,
            used: spent,
            variable: "FORGE_RATE_LIMIT_BURST",
          },
          ...Object.values(caps).map((cap) => ({ ...cap, used: used[cap.name] })),
        ],
      };
    },
  });
}

async function usageOf(
  { pool, waitingRequests }: Context,
  userId: string,
): Promise<Record<CapName, number>> {
  const [keys, sessions, workers, groups, bytes] = await Promise.all([
    countKeys(pool, userId),
    countSessions(pool, userId),
    countWorkers(pool, userId),
    countQueuedByGroup(pool, userId),
    sumStoredBytes(pool, userId),
  ]);
  return {
    waiting_requests: waitingRequests.countOf(userId, "waiting_requests"),
    waiting_polls: waitingRequests.countOf(userId, "waiting_polls"),
    open_uploads: waitingRequests.countOf(userId, "open_uploads"),
    keys,
    sessions,
    workers,
    queued_jobs: [...groups.values()].reduce((sum, jobs) => sum + jobs, 0),
    queued_shapes: groups.size,
    stored_bytes: bytes,
  };
}
