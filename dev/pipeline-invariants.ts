import type { Client } from "@temporalio/client";
import type pg from "pg";
import { isOver, type PipelineStatus } from "../core/pipelines/step";
import { pipelineWorkflowId } from "../core/workflow-ids";
import { all } from "../platform/postgres/pool";
import { compareWorkflow } from "./compare-workflow";
import { inParallel } from "./in-parallel";

/**
 * Checks I6: within 60 s, the workflow of an ended pipeline has closed, and the workflow of any
 * other pipeline runs.
 */
export async function comparePipelines(pool: pg.Pool, temporal: Client): Promise<string[]> {
  const rows = await all<{ pipeline_id: string; status: PipelineStatus }>(
    pool,
    "select pipeline_id, status from pipelines",
  );
  return await inParallel(rows, async ({ pipeline_id: id, status }) => {
    const shouldRun = !isOver(status);
    const what = `the workflow of ${id}, which is ${status}, to ${shouldRun ? "run" : "have closed"}`;
    const isRight = (is: string): boolean => (is === "RUNNING") === shouldRun;
    return await compareWorkflow(temporal, pipelineWorkflowId(id), what, isRight);
  });
}
