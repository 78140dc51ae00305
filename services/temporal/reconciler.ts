import { setTimeout as sleep } from "node:timers/promises";
import type { WorkflowExecutionInfo } from "@temporalio/client";
import { runEach } from "../../platform/concurrency/run-each";
import { reasonOf, TEMPORAL_DEADLINE_MS } from "../../platform/temporal/client";
import type { Context } from "../context";
import { deploymentWorkflows } from "../deployments/deployment-workflows";
import { jobWorkflows } from "../jobs/job-workflows";
import { LoopComponent } from "../loop-component";
import { pipelineWorkflows } from "../pipelines/pipeline-workflows";
import {
  listFinished,
  listFinishedOrMissing,
  listUnchanged,
  type WorkflowKind,
} from "./compared-rows";
import { deleteOldStuckWrites } from "./stuck-writes";

/** Page size of rows and of workflows. */
const PAGE = 1_000;
const CONCURRENCY = 8;
/**
 * The fraction of the time (0 to 1) that sweeps should take at most. For this, the reconciler rests
 * after a sweep, in proportion to the sweep's duration. A rest is at most MAX_REST_MS, because a
 * longer one would delay repairs. Long sweeps therefore exceed the fraction.
 */
const BUSY_SHARE = 0.2;
const MAX_REST_MS = 10_000;
/**
 * Longest interval between two sweeps, not counting the rest after a sweep. The interval is a
 * quarter of FORGE_RECONCILE_AFTER_S. With the default of 25 s, the interval is about 6 s, so that
 * a lost workflow runs again within a minute (invariant I6). The worst case is about 59 s:
 * - 25 s (FORGE_RECONCILE_AFTER_S) until the workflow's row counts as unchanged;
 * - 9 s for a sweep that began just before and misses the row;
 * - 10 s of rest, and the interval of 6 s;
 * - 9 s for the sweep that finds the row.
 */
const MAX_INTERVAL_MS = 15_000;
/**
 * After this many failures in a row, Temporal counts as down and the sweep ends: every further
 * comparison would only wait for its deadline.
 */
const MAX_FAILED_IN_A_ROW = CONCURRENCY;
const MAX_REMEMBERED = 10_000;
/**
 * How far back the reconciler looks for terminated workflows. An activity of a terminated workflow
 * may still run for up to a day and then finish the row, so this must be longer than a day.
 */
const TERMINATED_WITHIN_MS = 3 * 86_400_000;

/**
 * How many terminated runs of each kind of workflow a sweep compares with their rows, at most. This
 * many take about 3 s. The next sweep continues with further runs.
 */
const MAX_RUNS = 4_000;

/** Maps the run id of a terminated workflow to the id of the workflow's row. */
type TerminatedRuns = Map<string, string>;

/**
 * Compares the open workflows in Temporal with the unfinished rows and repairs the differences: a
 * job, pipeline or deployment whose workflow is missing, and a workflow whose row is finished or
 * missing. Also wakes workflows that have work to do, and repairs finished jobs whose workflow was
 * terminated.
 */
export class Reconciler extends LoopComponent {
  private readonly stopping = new AbortController();
  private readonly kinds: WorkflowKind[];
  /** Ids whose last comparison failed. */
  private readonly failed = new Set<string>();
  /**
   * Run ids of terminated workflows whose row was already final when the two were compared. Sweeps
   * skip them, because neither can change any more.
   */
  private comparedRuns = new Set<string>();

  constructor(ctx: Context) {
    super(ctx, "reconciler", Math.min(MAX_INTERVAL_MS, (ctx.config.reconcileAfterS * 1000) / 4));
    this.kinds = [jobWorkflows(ctx), pipelineWorkflows(ctx), deploymentWorkflows(ctx)];
  }

  override async stop(): Promise<void> {
    this.stopping.abort();
    await super.stop();
  }

  protected async run(): Promise<void> {
    const { clock, pool } = this.ctx;
    const startedMs = clock.nowMs();
    const [open, terminated] = await Promise.allSettled([this.listOpen(), this.listTerminated()]);
    let isDown = false;
    const compareKind = async (kind: WorkflowKind): Promise<void> => {
      const ids = await this.listDifferent(kind, listed(open)?.get(kind));
      const runs = await this.listRunsOfFinishedRows(
        kind,
        listed(terminated)?.get(kind) ?? new Map(),
      );
      const compared = new Set<string>();
      if (!(await this.compareAll(kind, [...new Set([...ids, ...runs.values()])], compared))) {
        isDown = true;
      }
      for (const [runId, id] of runs) if (compared.has(id)) this.comparedRuns.add(runId);
    };
    await runEach([
      ...this.kinds.map((kind) => () => compareKind(kind)),
      () => deleteOldStuckWrites(pool),
      async () => [open, terminated].forEach(throwIfFailed),
    ]);
    if (isDown) return;
    const restMs = (clock.nowMs() - startedMs) * (1 / BUSY_SHARE - 1);
    await sleep(Math.min(restMs, MAX_REST_MS), undefined, { signal: this.stopping.signal }).catch(
      () => undefined,
    );
  }

  /**
   * Ids of rows with an open workflow in Temporal's visibility index. The index lags behind, so
   * `compare` reads the state of each workflow again.
   */
  private async listOpen(): Promise<Map<WorkflowKind, Set<string>>> {
    const open = new Map(this.kinds.map((kind) => [kind, new Set<string>()]));
    for await (const { workflowId } of this.listWorkflows(
      this.kinds,
      "ExecutionStatus = 'Running'",
    )) {
      for (const [kind, ids] of open) {
        const id = kind.idOf(workflowId);
        if (id !== undefined) ids.add(id);
      }
    }
    return open;
  }

  /**
   * Lists the terminated runs that are not in `comparedRuns`. Includes only the kinds of workflows
   * with `endsAsRow`: such a workflow must end with the same status as its row. After a
   * termination, the two statuses can differ, because an activity of the workflow may finish the
   * row later.
   */
  private async listTerminated(): Promise<Map<WorkflowKind, TerminatedRuns>> {
    const kinds = this.kinds.filter(({ endsAsRow }) => endsAsRow);
    const terminated = new Map(kinds.map((kind) => [kind, new Map() as TerminatedRuns]));
    const stillListed = new Set<string>();
    const since = new Date(Date.now() - TERMINATED_WITHIN_MS).toISOString();
    const which = `ExecutionStatus = 'Terminated' AND CloseTime > '${since}'`;
    for await (const { workflowId, runId } of this.listWorkflows(kinds, which)) {
      if (this.comparedRuns.has(runId)) stillListed.add(runId);
      else {
        for (const [kind, runs] of terminated) {
          const id = kind.idOf(workflowId);
          if (id !== undefined) runs.set(runId, id);
        }
      }
    }
    // Forgets the runs that are no longer listed.
    this.comparedRuns = stillListed;
    return terminated;
  }

  private listWorkflows(
    kinds: WorkflowKind[],
    which: string,
  ): AsyncIterable<WorkflowExecutionInfo> {
    // Filter by task queue: another Forge in the same namespace has its own database and its own
    // task queue.
    const { taskQueue } = this.ctx.config.temporal;
    const types = kinds.flatMap((kind) => kind.types.map((type) => `'${type}'`)).join(", ");
    const query = `WorkflowType IN (${types}) AND TaskQueue = '${taskQueue}' AND ${which}`;
    return this.ctx.temporal.workflow.list({ query, pageSize: PAGE });
  }

  /**
   * Returns terminated runs whose row has finished, at most MAX_RUNS. Leaves out runs whose row has
   * not finished: `listDifferent` finds these rows, because their workflow is not open.
   */
  private async listRunsOfFinishedRows(
    kind: WorkflowKind,
    runs: TerminatedRuns,
  ): Promise<TerminatedRuns> {
    const find = (page: string[]) => listFinished(this.ctx.pool, kind.rows, page);
    const finished = new Set(await inPages(new Set(runs.values()), find));
    return new Map([...runs].filter(([, id]) => finished.has(id)).slice(0, MAX_RUNS));
  }

  /**
   * Ids whose row and workflow may differ.
   *
   * @param open undefined if Temporal's visibility index is down: then lists only rows whose
   *   workflow has work to do.
   */
  private async listDifferent(
    kind: WorkflowKind,
    open: Set<string> | undefined,
  ): Promise<string[]> {
    const afterS = this.ctx.config.reconcileAfterS;
    const different: string[] = [];
    for (let afterId = ""; ; ) {
      const unchanged = await listUnchanged(this.ctx.pool, kind.rows, afterS, afterId, PAGE);
      for (const { id, is_due: isDue } of unchanged) {
        if (isDue || open?.has(id) === false) different.push(id);
      }
      if (unchanged.length < PAGE) break;
      afterId = unchanged.at(-1)?.id ?? "";
    }
    const find = (page: string[]) => listFinishedOrMissing(this.ctx.pool, kind.rows, page, afterS);
    return [...different, ...(await inPages(open ?? new Set(), find))];
  }

  /**
   * Compares these ids, several at a time.
   *
   * @param compared the function adds the ids whose comparison succeeded to this set.
   * @returns false if the comparisons ended early because Temporal is down.
   */
  private async compareAll(
    kind: WorkflowKind,
    ids: string[],
    compared: Set<string>,
  ): Promise<boolean> {
    // Move the ids whose previous comparison failed to the end of the queue. They may fail again,
    // and must not delay the other ids.
    const hasFailed = (id: string): number => Number(this.failed.has(id));
    const queue = ids.sort((a, b) => hasFailed(a) - hasFailed(b)).values();
    let failedInARow = 0;
    const work = async (): Promise<void> => {
      for (const id of queue) {
        if (this.stopping.signal.aborted || failedInARow >= MAX_FAILED_IN_A_ROW) return;
        if (await this.compare(kind, id)) {
          compared.add(id);
          failedInARow = 0;
        } else failedInARow++;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    return failedInARow < MAX_FAILED_IN_A_ROW;
  }

  /** @returns false if the comparison failed. */
  private async compare(kind: WorkflowKind, id: string): Promise<boolean> {
    try {
      await this.ctx.temporal.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
        kind.compare(id),
      );
      this.failed.delete(id);
      return true;
    } catch (error) {
      if (this.failed.size >= MAX_REMEMBERED) this.failed.clear();
      this.failed.add(id);
      const fields = { workflow_of: id, err: reasonOf(error) };
      this.ctx.logger.warn(fields, "comparison failed; the next sweep retries it");
      return false;
    }
  }
}

const listed = <T>(list: PromiseSettledResult<T>): T | undefined =>
  list.status === "fulfilled" ? list.value : undefined;

function throwIfFailed(list: PromiseSettledResult<unknown>): void {
  if (list.status === "rejected") throw list.reason;
}

/** Calls `find` with one page of ids at a time. Returns all that it found. */
async function inPages(
  given: Set<string>,
  find: (page: string[]) => Promise<string[]>,
): Promise<string[]> {
  const ids = [...given];
  const found: string[] = [];
  for (let from = 0; from < ids.length; from += PAGE) {
    found.push(...(await find(ids.slice(from, from + PAGE))));
  }
  return found;
}
