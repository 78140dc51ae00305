import { setTimeout as sleep } from "node:timers/promises";
import { createFinalActivities } from "../../activities/jobs/finish-job";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { TEMPORAL_DEADLINE_MS } from "../../platform/temporal/client";
import { type Forge, startForge } from "../support/forge";
import { untilAwaited, untilDelivered, workflowOf } from "../support/job-workflow";
import { AUDIT } from "../support/jobs";
import { asActivity } from "../support/late-activity";
import { saveAttempt } from "../support/saved-attempt";
import { slowTestAlone } from "../support/slow";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    // Long enough that the reconciler does nothing before the test freezes Temporal.
    { FORGE_RECONCILE_AFTER_S: "8" },
    { split: true, own: ["server", "temporal"] },
  );
}, 120_000);

afterAll(async () => {
  await forge?.stop();
});

slowTestAlone(
  "the workflow of a job completes with it, although the database had lost the result and a late process writes the second one while Temporal is frozen",
  async () => {
    const { user, stack, ctx } = forge;
    const worker = await forge.worker("cpu-1");
    const { job_id: id } = await user.submit("audit", AUDIT);
    const job = await worker.take();
    await untilAwaited(forge, id);
    const restore = await saveAttempt(forge, id, worker.id);
    const before = await workflowOf(forge, id).describe();
    await stack.temporalWorker?.kill();
    expect((await worker.complete(job)).status).toBe(200);
    await untilDelivered(forge, id);
    await restore();
    await stack.startTemporalWorker();
    await waitFor("the workflow to learn what the database lost", async () => {
      const { runId, status } = await workflowOf(forge, id).describe();
      return status.name === "FAILED" || runId !== before.runId;
    });
    const temporal = forge.own("temporal");
    temporal.signal("SIGSTOP");
    try {
      expect((await worker.complete(job)).status).toBe(200);
      await waitFor("a delivery to fail", async () => {
        const failed = "select from outbox where job_id = $1 and last_error is not null";
        return (await all(ctx.pool, failed, [id])).length > 0;
      });
      const { finishJob } = createFinalActivities(ctx);
      await asActivity("finishJob", () => finishJob({ jobId: id, attempt: 1, requestId: "late" }));
      const completed = "select from jobs where job_id = $1 and status = 'completed'";
      expect(await all(ctx.pool, completed, [id])).toHaveLength(1);
      // Wait until every delivery in flight has timed out. Otherwise one of them could still reach
      // the workflow when Temporal continues.
      await sleep(TEMPORAL_DEADLINE_MS + 1_000);
    } finally {
      temporal.signal("SIGCONT");
    }
    const isCompleted = async () =>
      (await workflowOf(forge, id).describe()).status.name === "COMPLETED";
    await waitFor("the workflow to complete", isCompleted, { timeoutMs: 60_000 });
    await forge.proveInvariants();
  },
  180_000,
);
