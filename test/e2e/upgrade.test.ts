import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Connection } from "@temporalio/client";
import { msToTs } from "@temporalio/common/lib/time";
import { SEARCH_ATTRIBUTES } from "../../core/jobs/workflow";
import { pipelineWorkflowId } from "../../core/workflow-ids";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { BYO_DATA, startPipeline, stepOf, untilPipeline, WorkerPool } from "../support/pipelines";
import { previousRelease, releaseBeforeChanges } from "../support/previous-release";
import { slowDescribe, slowTest } from "../support/slow";

let forge: Forge;
let crew: WorkerPool;

beforeAll(async () => {
  forge = await startForge({}, { own: ["server"] });
  crew = await new WorkerPool(forge).start(1);
});

afterAll(async () => {
  try {
    await crew?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

async function replaceServer(release: string): Promise<void> {
  await forge.stack.server?.stop();
  forge.stack.release = release;
  await forge.stack.startServer();
}

const PIPELINE = { ...BYO_DATA, approvals: ["train"] };

/** The patches recorded in an execution's history. */
async function patchesOf(id: string): Promise<string[]> {
  const handle = forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id));
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(({ markerRecordedEventAttributes: marker }) => {
    const [payload] = marker?.details?.["patch-data"]?.payloads ?? [];
    if (marker?.markerName !== "core_patch" || !payload?.data) return [];
    return [(JSON.parse(Buffer.from(payload.data).toString("utf8")) as { id: string }).id];
  });
}

slowTest(
  "a pipeline that started with the previous workflow code ends with today's",
  async () => {
    const previous = await previousRelease();
    const today = forge.stack.release;
    try {
      await replaceServer(previous.dist);
      const old = await startPipeline(forge.user, PIPELINE);
      const before = await untilPipeline(forge.user, old, ["waiting_approval"]);
      expect(stepOf(before, "distill").status).toBe("completed");

      await replaceServer(today);
      await forge.user.post(`/api/pipelines/${old}/approve`, {});
      const done = await untilPipeline(forge.user, old);
      expect(done).toMatchObject({ status: "completed", run: 1 });
      // Today's code records this patch in every execution that it starts. The patch is missing, so
      // today's code has continued the old execution, and has not started a new one.
      expect(await patchesOf(old)).not.toContain("plan-brings-orders");

      const fresh = await startPipeline(forge.user, { ...PIPELINE, approvals: [] });
      expect((await untilPipeline(forge.user, fresh)).status).toBe("completed");
      expect(await patchesOf(fresh)).toContain("plan-brings-orders");
    } finally {
      previous.remove();
    }
  },
  120_000,
);

/**
 * These tests run real servers of the previous release, so only `npm run test:slow` runs them. The
 * replay of the recorded histories (histories.test.ts) is part of every test run.
 */
slowDescribe("a change of the workflows' commands takes two releases, so that", () => {
  const today = join(checkoutRoot(), "dist");
  let before: ReturnType<typeof releaseBeforeChanges>;

  beforeAll(() => {
    before = releaseBeforeChanges();
  });

  afterAll(async () => {
    await replaceServer(today);
    before.remove();
  });

  const waiting = async (): Promise<string> => {
    const id = await startPipeline(forge.user, PIPELINE);
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    return id;
  };

  /** Workflow tasks that failed because code and history differ. */
  async function failedTasks(id: string): Promise<number> {
    const { events } = await forge.ctx.temporal.workflow
      .getHandle(pipelineWorkflowId(id))
      .fetchHistory();
    return (events ?? []).filter((event) => event.workflowTaskFailedEventAttributes).length;
  }

  test("after a rollback, the previous release finishes executions of the new one, and starts new ones without the change", async () => {
    const begun = await waiting();
    expect(await patchesOf(begun)).toContain("plan-brings-orders");
    await replaceServer(before.dist);
    await forge.user.post(`/api/pipelines/${begun}/approve`, {});
    const fresh = await waiting();
    expect((await untilPipeline(forge.user, begun)).status).toBe("completed");
    expect(await patchesOf(fresh)).toEqual([]);
    await replaceServer(today);
    await forge.user.post(`/api/pipelines/${fresh}/approve`, {});
    expect((await untilPipeline(forge.user, fresh)).status).toBe("completed");
    expect(await patchesOf(fresh)).not.toContain("plan-brings-orders");
    expect([await failedTasks(begun), await failedTasks(fresh)]).toEqual([0, 0]);
  }, 120_000);

  test("both releases process tasks of one queue during a rollout", async () => {
    forge.stack.release = before.dist;
    await forge.stack.startTemporalWorker();
    try {
      const ids = await Promise.all([1, 2, 3].map(waiting));
      for (const id of ids) await forge.user.post(`/api/pipelines/${id}/approve`, {});
      for (const id of ids) {
        expect((await untilPipeline(forge.user, id)).status).toBe("completed");
        expect(await failedTasks(id)).toBe(0);
      }
    } finally {
      await forge.stack.temporalWorker?.stop();
      forge.stack.release = today;
    }
  }, 120_000);
});

test("a new workflow type is only exported in its first release", () => {
  const exported = readFileSync(join(checkoutRoot(), "workflows", "index.ts"), "utf8");
  // A server of the previous release must be able to process the tasks of every started workflow.
  // So one release exports a new type, and the next release is the first to start it.
  expect([...exported.matchAll(/\w+Workflow\b/g)].map(([name]) => name)).toEqual([
    "bootstrapWorkflow",
    "deploymentWorkflow",
    "jobWorkflow",
    "submittedJobWorkflow",
    "pipelineWorkflow",
  ]);
});

test("no workflow calls the SDK's patch functions directly", () => {
  const folder = join(checkoutRoot(), "workflows");
  const asking = readdirSync(folder).filter((file) =>
    /\b(?:patched|deprecatePatch)\b/.test(readFileSync(join(folder, file), "utf8")),
  );
  expect(asking).toEqual(["patches.ts"]);
});

test("a server that only serves the API registers the search attributes", async () => {
  const namespace = `alone-${process.pid}`;
  const { connection } = forge.ctx.temporal;
  const workflowExecutionRetentionPeriod = msToTs("1 day");
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod,
  });
  process.env.TEMPORAL_NAMESPACE = namespace;
  try {
    await forge.stack.startAnotherServer();
  } finally {
    delete process.env.TEMPORAL_NAMESPACE;
  }
  const { operatorService } = connection as Connection;
  await waitFor("the attributes", async () => {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    return Object.values(SEARCH_ATTRIBUTES).every((name) => name in customAttributes);
  });
});
