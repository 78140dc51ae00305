import { setTimeout as sleep } from "node:timers/promises";
import { jobWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { slowTest } from "../support/slow";

const JOBS = 150;
const FROZEN_MS = 17_000;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    { FORGE_RECONCILE_AFTER_S: "1", FORGE_WORKFLOW_START_S: "0.2" },
    { own: ["server", "temporal"] },
  );
}, 120_000);

afterAll(async () => {
  await forge?.stop();
});

slowTest(
  "Temporal stands still while workflows that were gone are started again: all run within a minute",
  async () => {
    const ids: string[] = [];
    for (let n = 0; n < JOBS; n += 25) {
      const submissions = Array.from({ length: 25 }, () => forge.user.submit("audit", AUDIT));
      ids.push(...(await Promise.all(submissions)).map(({ job_id }) => job_id));
    }
    const isDelivered = async () => (await all(forge.ctx.pool, "select from outbox")).length === 0;
    await waitFor("the starts to be delivered", isDelivered, { timeoutMs: 60_000 });
    await forge.stack.server?.kill();
    for (const id of ids) {
      await forge.ctx.temporal.workflow.getHandle(jobWorkflowId(id)).terminate("lost");
    }
    const query = `TaskQueue = '${forge.ctx.config.temporal.taskQueue}' AND ExecutionStatus = 'Running'`;
    const countOpen = async () => (await forge.ctx.temporal.workflow.count(query)).count;
    await waitFor("Temporal's index", async () => (await countOpen()) === 0);
    await forge.stack.startServer();
    const hasBegun = () =>
      forge.servers().some((server) => server.logTail(400).includes("its workflow is gone"));
    await waitFor("the reconciler to begin", hasBegun, { everyMs: 5, timeoutMs: 60_000 });
    const temporal = forge.own("temporal");
    temporal.signal("SIGSTOP");
    await sleep(FROZEN_MS);
    temporal.signal("SIGCONT");
    const allRun = async () => (await countOpen()) >= JOBS;
    await waitFor("all workflows to run", allRun, { timeoutMs: 60_000, everyMs: 500 });
  },
  240_000,
);
