import { setTimeout as sleep } from "node:timers/promises";
import { runEach } from "../../platform/concurrency/run-each";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import { reasonOf, TEMPORAL_DEADLINE_MS } from "../../platform/temporal/client";
import type { Context } from "../context";
import { deploymentWorkflows } from "../deployments/deployment-workflows";
import { jobWorkflows } from "../jobs/job-workflows";
import { forgetOldStuckWrites } from "../jobs/stuck-writes";
import { pipelineWorkflows } from "../pipelines/pipeline-workflows";
import { listNotStanding } from "./standing";
import type { WorkflowKind } from "./workflow-kind";

/** Ids read at once, of either side. */
const PAGE = 1_000;
/** Workflows asked about one by one, at once. */
const AT_ONCE = 8;
/** Of the time, how much of it comparing takes at most. */
const BUSY_SHARE = 0.2;

/**
 * Compares the open workflows that Temporal lists with the rows that they work for, as two sets, and looks only
 * at what is in one of them: a job, pipeline or deployment that Temporal forgot, a workflow that outlived its
 * row, or whose row is not there. And at rows that are due: there is something to do, and the workflow does
 * nothing.
 */
export class Reconciler implements Component {
  readonly name = "reconciler";
  private readonly loop: Loop;
  private readonly stopping = new AbortController();
  private readonly kinds: WorkflowKind[];

  constructor(private readonly ctx: Context) {
    const everyMs = Math.min(15_000, (ctx.config.reconcileAfterS * 1000) / 4);
    this.loop = new Loop("reconciler", everyMs, () => this.sweep(), ctx);
    this.kinds = [jobWorkflows(ctx), pipelineWorkflows(ctx), deploymentWorkflows(ctx)];
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
    const { clock, pool } = this.ctx;
    const began = clock.nowMs();
    const open = await this.listOpen();
    const compareKind = async (kind: WorkflowKind): Promise<void> =>
      await this.compareAll(kind, await this.listDifferent(kind, open.get(kind) ?? new Set()));
    await runEach([
      ...this.kinds.map((kind) => () => compareKind(kind)),
      () => forgetOldStuckWrites(pool),
    ]);
    // With very many open workflows a sweep takes long: the next one then waits longer too.
    const restMs = (clock.nowMs() - began) * (1 / BUSY_SHARE - 1);
    await sleep(restMs, undefined, { signal: this.stopping.signal }).catch(() => undefined);
  }

  /** Ids of rows whose workflows are open, as Temporal's index has it: it lags, so each is looked at again. */
  private async listOpen(): Promise<Map<WorkflowKind, Set<string>>> {
    const open = new Map(this.kinds.map((kind) => [kind, new Set<string>()]));
    // Another Forge may share the namespace: its rows are in a database of its own.
    const { taskQueue } = this.ctx.config.temporal;
    const types = this.kinds.flatMap((kind) => kind.types.map((type) => `'${type}'`)).join(", ");
    const ours = `WorkflowType IN (${types}) AND TaskQueue = '${taskQueue}'`;
    const query = `${ours} AND ExecutionStatus = 'Running'`;
    const workflows = this.ctx.temporal.workflow.list({ query, pageSize: PAGE });
    for await (const { workflowId } of workflows) {
      for (const [kind, ids] of open) {
        const id = kind.idOf(workflowId);
        if (id !== undefined) ids.add(id);
      }
    }
    return open;
  }

  private async listDifferent(kind: WorkflowKind, open: Set<string>): Promise<string[]> {
    const afterS = this.ctx.config.reconcileAfterS;
    const different: string[] = [];
    for (let afterId = ""; ; ) {
      const standing = await kind.listStanding(afterS, afterId, PAGE);
      for (const { id, is_due: isDue } of standing) {
        if (isDue || !open.has(id)) different.push(id);
      }
      if (standing.length < PAGE) break;
      afterId = standing.at(-1)?.id ?? "";
    }
    const ids = [...open];
    for (let from = 0; from < ids.length; from += PAGE) {
      const page = ids.slice(from, from + PAGE);
      different.push(...(await listNotStanding(this.ctx.pool, kind.rows, page, afterS)));
    }
    return different;
  }

  private async compareAll(kind: WorkflowKind, ids: string[]): Promise<void> {
    const queue = ids.values();
    const lane = async (): Promise<void> => {
      for (const id of queue) {
        if (this.stopping.signal.aborted) return;
        await this.compare(kind, id);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  }

  private async compare(kind: WorkflowKind, id: string): Promise<void> {
    try {
      await this.ctx.temporal.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
        kind.compare(id),
      );
    } catch (error) {
      this.ctx.logger.warn({ workflow_of: id, err: reasonOf(error) }, "cannot compare yet");
    }
  }
}
