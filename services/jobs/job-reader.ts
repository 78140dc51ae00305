import { type Principal, type TenantScope, tenantScopeOf } from "../../core/accounts/permissions";
import { CoalescedByGroup } from "../../platform/concurrency/coalesce";
import type { Context } from "../context";
import { findJobsUpTo, type JobRow } from "./jobs";

const MAX_AT_ONCE = 16;
/**
 * A statement returns no further job once the returned jobs have this many bytes in total. Only the
 * last job can exceed the limit. The limit exists because the process serves no other request while
 * it writes the responses.
 */
const MAX_BYTES = 256 * 1024;

/**
 * Reads jobs by id for requests. While a statement of a tenant runs, that tenant's further calls
 * wait, and share the next statement. Many clients poll the state of a job, and a statement for 16
 * jobs takes not much longer than one for a single job. If the statement stops at MAX_BYTES, each
 * of the remaining jobs is read by a statement of its own.
 */
export class JobReader {
  private readonly ofTenant: CoalescedByGroup<string, JobRow | undefined>;
  private readonly ofAllTenants: CoalescedByGroup<string, JobRow | undefined>;

  constructor(private readonly ctx: Pick<Context, "pool" | "connectionQueues">) {
    const limits = {
      maxSize: MAX_AT_ONCE,
      failsWaiting: () => ctx.connectionQueues.user.isStalled,
    };
    this.ofTenant = new CoalescedByGroup(
      (userId, ids) => this.findTogether(userId, ids, userId),
      limits,
    );
    this.ofAllTenants = new CoalescedByGroup(
      (userId, ids) => this.findTogether(userId, ids, null),
      limits,
    );
  }

  /**
   * The job, if the caller may see it. The read starts after the call, so the result is never older
   * than the call.
   */
  find(jobId: string, caller: Pick<Principal, "userId" | "scope">): Promise<JobRow | undefined> {
    const reads = tenantScopeOf(caller) === null ? this.ofAllTenants : this.ofTenant;
    return reads.add(caller.userId, jobId);
  }

  private async findTogether(
    userId: string,
    jobIds: string[],
    scope: TenantScope,
  ): Promise<(JobRow | undefined | Promise<JobRow | undefined>)[]> {
    const { pool, connectionQueues } = this.ctx;
    const find = (ids: string[]) =>
      connectionQueues.user.run(userId, () => findJobsUpTo(pool, ids, scope, MAX_BYTES));
    const rows = await find(jobIds);
    const byId = new Map(rows.map((row) => [row.job_id, row]));
    const bytes = rows.reduce((sum, row) => sum + row.shown_bytes, 0);
    const wasCut = jobIds.length > 1 && bytes >= MAX_BYTES;
    return jobIds.map((id) => {
      const row = byId.get(id);
      return row || !wasCut ? row : find([id]).then(([alone]) => alone);
    });
  }
}
