import type pg from "pg";
import type { RankedTenants } from "../../core/fleet/matching";
import type { JobType } from "../../core/jobs/job-types";
import { isLockTimeout } from "../../platform/postgres/errors";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { requirementGroupRange } from "../accounts/quotas";
import {
  BEGIN,
  GROUPS,
  HEADS,
  headsOf,
  listGroups,
  ownFits,
  SKIPPING,
  sharedFits,
  WAITING,
} from "./assignment-sql";
import { MAY_RUN } from "./eligibility-sql";
import { OFFER, type Offer } from "./workers";

export interface MatchedPair {
  job_id: string;
  attempt: number;
  worker_id: string;
}

export interface Pass {
  pairs: Assigned[];
  /**
   * The requirement group after which the next pass continues; undefined if this pass read all
   * groups.
   */
  next: string | undefined;
  /**
   * Whether another pass over the same groups right now would assign nothing: see IS_EXHAUSTIVE.
   */
  isExhaustive: boolean;
  /** Whether this pass chose pairs whose rows another transaction has locked or changed. */
  wasBlocked: boolean;
  /**
   * True if a pass over one tenant did nothing because a shared worker fits. A pass over all
   * requirement groups is then needed.
   */
  sharedWorkerFits: boolean;
}

export interface Assigned extends MatchedPair {
  job_type: JobType;
  /** Seconds from the job's submission to its first assignment; null for later assignments. */
  waited_s: number | null;
}

/**
 * The columns of `Assigned` in a row of a statement. All of them are null if the row has no
 * assignment.
 */
export type MaybeAssigned = { [K in keyof Assigned]: Assigned[K] | null };

interface PassRow extends MaybeAssigned {
  next: string | null;
  is_exhaustive: boolean | null;
  was_blocked: boolean | null;
  /**
   * False if another process had the lock; null if the pass had nothing to do and did not try to
   * take it.
   */
  had_lock: boolean | null;
  shared_worker_fits: boolean | null;
}

/** A pass over these workers only, and over the groups whose jobs could run on these workers. */
interface FewWorkers {
  workers: string[];
  groups: string[];
}

/**
 * A pass over one tenant's queued jobs and over the tenant's own workers that fit a job of
 * `groups`. Assigns nothing if none of these workers is idle. Assigns nothing if an idle shared
 * worker fits a job of `groups`: shared workers are divided among all tenants, which needs a pass
 * over all requirement groups (`Pass.sharedWorkerFits`).
 */
export interface OneTenant {
  tenant: string;
  groups: string[];
}

/**
 * What a pass reads. If the scope is a string, the pass reads all requirement groups after the
 * group with this key; "" means all groups. If the scope is an object, the pass reads only some of
 * the workers and groups.
 */
export type Scope = string | FewWorkers | OneTenant;

function statementOf(
  scope: Scope,
  { after, these, own }: typeof WAITING,
): [statement: string, parameters: unknown[]] {
  if (typeof scope === "string") return [after, [scope]];
  if ("workers" in scope) return [these, [scope.groups, scope.workers]];
  return [own, [...requirementGroupRange(scope.tenant), scope.tenant, scope.groups]];
}

async function passOf(
  pool: pg.Pool,
  ranked: RankedTenants,
  scope: Scope,
  statements: typeof WAITING,
): Promise<PassRow[]> {
  const [statement, parameters] = statementOf(scope, statements);
  const values = [ranked, ...parameters];
  const pass = (db: Queryable): Promise<PassRow[]> => all<PassRow>(db, statement, values);
  const rows = await pass(pool);
  if (rows.at(-1)?.had_lock !== false) return rows;
  return await transaction(pool, pass, { begin: BEGIN });
}

export const assignedIn = (rows: MaybeAssigned[]): Assigned[] =>
  rows.flatMap(({ job_id, attempt, worker_id, job_type, waited_s }) =>
    job_id === null || attempt === null || worker_id === null || job_type === null
      ? []
      : [{ job_id, attempt, worker_id, job_type, waited_s }],
  );

/**
 * Runs one pass of the scheduler, usually as a single statement. The statement's snapshot may be
 * older than another process's last pass, so the statement checks each row again when it locks the
 * row. If another process has the matcher's lock, waits for the lock and runs the statement again.
 * If a row stays locked, runs the pass without the locked rows.
 */
export async function assignOnce(
  pool: pg.Pool,
  ranked: RankedTenants,
  scope: Scope = "",
): Promise<Pass> {
  const rows = await passOf(pool, ranked, scope, WAITING).catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
    return passOf(pool, ranked, scope, SKIPPING);
  });
  const {
    next,
    is_exhaustive: isExhaustive,
    was_blocked: wasBlocked,
    shared_worker_fits: sharedWorkerFits,
  } = rows.at(-1) ?? {};
  return {
    pairs: assignedIn(rows),
    next: next ?? undefined,
    isExhaustive: isExhaustive ?? false,
    wasBlocked: wasBlocked ?? false,
    sharedWorkerFits: sharedWorkerFits ?? false,
  };
}

/**
 * Whether any attempt is queued. Much cheaper than a pass, which is a transaction under a lock. The
 * `order by` makes Postgres use the queue's index (see QUEUE_ORDER).
 */
export async function isAnythingQueued(db: Queryable): Promise<boolean> {
  const row = await maybeOne(
    db,
    "select from attempts where state = 'queued' order by shape limit 1",
  );
  return row !== undefined;
}

const HAS_FITTING_WORKER = `
with ${headsOf("$1::text[]")}
select ${ownFits("heads")} or ${sharedFits("heads")} as found`;

/** Whether any idle worker fits a job of these requirement groups. Much cheaper than a pass. */
export async function hasFittingWorker(db: Queryable, groups: string[]): Promise<boolean> {
  return (await maybeOne<{ found: boolean }>(db, HAS_FITTING_WORKER, [groups]))?.found ?? false;
}

/**
 * Maximum number of requirement groups in a pass over few workers. If the workers fit jobs of more
 * groups, a pass over all groups runs instead.
 */
export const FEW_GROUPS = 50;

/** A string that sorts after the keys of all requirement groups. */
const LAST = "\u{10FFFF}";

/**
 * The statement of `findOfferAndFit`. Reads the requirement groups of the worker's owner, or all
 * groups if the worker is shared.
 */
const OFFER_AND_FIT = `
with recursive range as materialized (
  select case when shared then '' else $2::text end as after, case when shared then '${LAST}' else $3::text end as before
  from workers where worker_id = $1),
${listGroups("groups", "(select after from range)", GROUPS, "shape < (select before from range)")},
${HEADS}
select ${OFFER}, case when (select count(*) from groups) < ${GROUPS} then
         array(select shape from heads q where ${MAY_RUN} limit ${FEW_GROUPS + 1}) end as wanted
from workers w where w.worker_id = $1`;

/**
 * Reads a worker's offer: whether and until when the worker accepts jobs. `wanted` has the
 * requirement groups of queued jobs that could run on the worker, FEW_GROUPS + 1 at most. If
 * `wanted` is empty, the caller needs no pass, which would cost far more than this statement.
 * `wanted` is null if the queue has more groups than one statement reads.
 */
export async function findOfferAndFit(db: Queryable, workerId: string, ownerId: string) {
  const parameters = [workerId, ...requirementGroupRange(ownerId)];
  return await maybeOne<Offer & { wanted: string[] | null }>(db, OFFER_AND_FIT, parameters);
}

/**
 * Returns those of the given workers that hold an assigned or running attempt. The caller then
 * wakes their polls. An attempt can be running although its worker's poll still waits, if the
 * attempt started for an earlier poll that had already ended, and the waiting poll missed its
 * wake-up.
 */
export async function listHolding(db: Queryable, workerIds: string[]): Promise<string[]> {
  const rows = await all<{ worker_id: string }>(
    db,
    "select worker_id from attempts where state in ('assigned', 'running') and worker_id = any($1)",
    [workerIds],
  );
  return rows.map((row) => row.worker_id);
}
