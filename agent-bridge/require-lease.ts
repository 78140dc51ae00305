import { z } from "zod";
import { type Principal, restrictingKeyId } from "../core/accounts/permissions";
import { Conflict, NotFound } from "../core/errors";
import type { Context } from "../services/context";
import { findLease, type Lease } from "../services/jobs/leases";
import { notRegistered } from "./heartbeat";

/** Every request for files of a job carries the worker and the attempt. */
export const leaseQuery = z.object({
  worker_id: z.string().min(1).max(128),
  attempt: z.coerce.number().int().min(1).max(1_000),
});

/** The token is sent in a header, because a secret must not be in the URL. */
const LEASE_TOKEN = "X-Forge-Lease-Token";

export const leaseHeaders = {
  [LEASE_TOKEN]: z
    .string()
    .max(128)
    .optional()
    .describe("the `lease_token` that the worker sent to next_job, if any"),
};

export const LEASE_REFUSALS = {
  404: ["worker_not_registered", "job_not_found"],
  409: ["stale_attempt"],
};

interface LeasedCall {
  params: Record<string, string>;
  query: z.output<typeof leaseQuery>;
  headers: Record<string, string | undefined>;
  principal: Principal;
}

/**
 * Returns the attempt that the call names.
 * @throws 409 `stale_attempt` if the attempt does not run on the caller's worker, or if the lease
 *   token is missing or wrong.
 */
export async function requireLease(
  ctx: Context,
  { params, query, headers, principal }: LeasedCall,
): Promise<Lease> {
  const { job_id: jobId = "" } = params;
  const { worker_id: workerId, attempt } = query;
  const { userId } = principal;
  const boundKeyId = restrictingKeyId(principal);
  const token = headers[LEASE_TOKEN] ?? null;
  const found = await ctx.connectionQueues.worker.run(userId, () =>
    findLease(ctx.pool, { jobId, workerId, attempt, userId, boundKeyId, token }),
  );
  if (found.worker_id === null) throw notRegistered(workerId);
  if (found.lease) return found.lease;
  if (!found.knows_job) throw new NotFound("job", jobId, "job_id");
  throw staleLease(jobId, attempt, workerId);
}

export const staleLease = (jobId: string, attempt: number, workerId: string): Conflict =>
  new Conflict(
    "stale_attempt",
    `attempt ${attempt} of job "${jobId}" does not run on worker "${workerId}", or the lease token is wrong`,
  );
