import { type Principal, type TenantScope, tenantScopeOf } from "../../core/accounts/principal";
import { CoalescedByGroup } from "../../platform/concurrency/coalesce";
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
  private readonly ofTenant: CoalescedByGroup<string, JobRow | undefined>;
  private readonly ofAllTenants: CoalescedByGroup<string, JobRow | undefined>;

  constructor({ pool, connectionQueues }: Pick<Context, "pool" | "connectionQueues">) {
    const reads = (scopeOf: (userId: string) => TenantScope) =>
      new CoalescedByGroup<string, JobRow | undefined>(async (userId, jobIds) => {
        const rows = await connectionQueues.user.run(userId, () =>
          findJobs(pool, jobIds, scopeOf(userId)),
        );
        const byId = new Map(rows.map((row) => [row.job_id, row]));
        return jobIds.map((id) => byId.get(id));
      }, MAX_AT_ONCE);
    this.ofTenant = reads((userId) => userId);
    this.ofAllTenants = reads(() => null);
  }

  /** The job, if the caller may see it. Never older than the call. */
  find(jobId: string, caller: Pick<Principal, "userId" | "scope">): Promise<JobRow | undefined> {
    const reads = tenantScopeOf(caller) === null ? this.ofAllTenants : this.ofTenant;
    return reads.add(caller.userId, jobId);
  }
}
