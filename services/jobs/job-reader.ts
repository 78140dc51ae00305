import { type Principal, tenantScopeOf } from "../../core/accounts/principal";
import { Coalesced } from "../../platform/concurrency/coalesce";
import type { Context } from "../context";
import { findJobs, type JobRow } from "./jobs";

/** Each job may have a payload of a megabyte. */
const MAX_AT_ONCE = 16;

/**
 * Reads jobs by id for requests. While a statement of a tenant runs, that tenant's further calls wait, and share the
 * next statement. Many clients ask for the state of a job again and again, and one statement for 16 jobs takes not much
 * longer than one for a single job.
 */
export class JobReader {
  private readonly readers = new Map<string, Coalesced<string, JobRow | undefined>>();

  constructor(private readonly ctx: Pick<Context, "pool" | "connectionQueues">) {}

  /** The job, if the caller may see it. Never older than the call. */
  find(jobId: string, principal: Pick<Principal, "userId" | "scope">): Promise<JobRow | undefined> {
    const scope = tenantScopeOf(principal);
    const key = JSON.stringify([principal.userId, scope]);
    const reader = this.readers.get(key) ?? this.readerOf(principal.userId, scope);
    this.readers.set(key, reader);
    return reader.add(jobId);
  }

  private readerOf(userId: string, scope: string | null): Coalesced<string, JobRow | undefined> {
    const { pool, connectionQueues } = this.ctx;
    return new Coalesced(async (ids) => {
      const rows = await connectionQueues.user.run(userId, () => findJobs(pool, ids, scope));
      const byId = new Map(rows.map((row) => [row.job_id, row]));
      return ids.map((id) => byId.get(id));
    }, MAX_AT_ONCE);
  }
}
