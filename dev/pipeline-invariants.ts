import type { Client } from "@temporalio/client";
import type pg from "pg";
import { isOver, type PipelineStatus } from "../core/pipelines/step";
import { pipelineWorkflowId } from "../core/workflow-ids";
import { all } from "../infra/database/pool";
import { inParallel } from "./in-parallel";
import { waitFor } from "./stack/wait";

/** I6: the workflow of a pipeline that is over has closed, any other one runs, within 60 s. */
export async function comparePipelines(pool: pg.Pool, temporal: Client): Promise<string[]> {
  const rows = await all<{ pipeline_id: string; status: PipelineStatus }>(
    pool,
    "select pipeline_id, status from pipelines",
  );
  return await inParallel(rows, async ({ pipeline_id: id, status }) => {
    const shouldRun = !isOver(status);
    const agrees = async (): Promise<boolean> => {
      const { status: is } = await temporal.workflow.getHandle(pipelineWorkflowId(id)).describe();
      return (is.name === "RUNNING") === shouldRun;
    };
    const what = `the workflow of ${id}, which is ${status}, to ${shouldRun ? "run" : "have closed"}`;
    try {
      await waitFor(what, agrees, { timeoutMs: 60_000 });
      return [];
    } catch (error) {
      return [`I6 ${String(error)}`];
    }
  });
}
