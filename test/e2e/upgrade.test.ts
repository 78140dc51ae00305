import { pipelineWorkflowId } from "../../core/workflow-ids";
import { type Forge, startForge } from "../support/forge";
import { BYO_DATA, Crew, startPipeline, stepOf, untilPipeline } from "../support/pipelines";
import { previousRelease } from "../support/previous-release";

let forge: Forge;
let crew: Crew;

beforeAll(async () => {
  forge = await startForge();
});

afterAll(async () => {
  try {
    await crew?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

const PIPELINE = { ...BYO_DATA, approvals: ["train"] };

/** The changes of code that an execution knows of. */
async function patchesOf(id: string): Promise<string[]> {
  const handle = forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id));
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(({ markerRecordedEventAttributes: marker }) => {
    const [payload] = marker?.details?.["patch-data"]?.payloads ?? [];
    if (marker?.markerName !== "core_patch" || !payload?.data) return [];
    return [(JSON.parse(Buffer.from(payload.data).toString("utf8")) as { id: string }).id];
  });
}

test("a pipeline that began on the previous workflow code ends on today's", async () => {
  const previous = await previousRelease();
  const today = forge.stack.release;
  try {
    await forge.stack.server?.stop();
    forge.stack.release = previous.dist;
    await forge.stack.startServer();
    crew = await new Crew(forge).start(1);
    const old = await startPipeline(forge.user, PIPELINE);
    const before = await untilPipeline(forge.user, old, ["waiting_approval"]);
    expect(stepOf(before, "distill").status).toBe("completed");

    await forge.stack.server?.stop();
    forge.stack.release = today;
    await forge.stack.startServer();
    await forge.user.post(`/api/pipelines/${old}/approve`, {});
    const done = await untilPipeline(forge.user, old);
    expect(done).toMatchObject({ status: "completed", run: 1 });
    // It was not begun anew: it never learned what today's begin with.
    expect(await patchesOf(old)).not.toContain("plan-brings-orders");

    const fresh = await startPipeline(forge.user, { ...PIPELINE, approvals: [] });
    expect((await untilPipeline(forge.user, fresh)).status).toBe("completed");
    expect(await patchesOf(fresh)).toContain("plan-brings-orders");
  } finally {
    previous.remove();
  }
}, 120_000);
