/** Deployments whose workflow and rows differ, because Postgres or Temporal has lost writes. */

import { setTimeout as sleep } from "node:timers/promises";
import { deploymentWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { backUp } from "../support/backup";
import {
  type Deployment,
  deploy,
  read,
  ServingWorkers,
  serving,
  stop,
  until,
} from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { slowTest } from "../support/slow";

let forge: Forge;
const workers = new ServingWorkers();

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_HEARTBEAT_TIMEOUT_S: "3",
      FORGE_DEPLOYMENT_STOP_GRACE_S: "2",
      FORGE_RECONCILE_AFTER_S: "1",
    },
    { own: ["server", "temporal"] },
  );
}, 120_000);

afterEach(async () => {
  await workers.end();
});

afterAll(async () => {
  await forge?.stop();
});

const addWorker = (id: string) => workers.start(forge, id);

const workflowOf = (id: string) => forge.ctx.temporal.workflow.getHandle(deploymentWorkflowId(id));

const isServedBy =
  (workerId: string) =>
  (now: Deployment): boolean =>
    serving(now).includes(workerId);

slowTest(
  "its workflow waits for a job that a restored database does not know: it is placed again",
  async () => {
    const first = await addWorker("first");
    const { deployment_id: id } = await deploy(forge.user);
    const isRunning = async () => (await workflowOf(id).describe()).status.name === "RUNNING";
    await waitFor("its workflow", isRunning);
    const restore = await backUp(forge.stack.databaseUrl);
    await first.die();
    await waitFor("another placement", async () => {
      return (await read(forge.user, id)).placements.length === 2;
    });
    await waitFor("its job's workflow", async () => {
      return (await workflowOf(id).describe()).raw.pendingChildren?.length === 1;
    });
    await workflowOf(id).terminate("a slip of the mouse");
    await waitFor("the new run to wait for the job", async () => {
      const { raw } = await workflowOf(id).describe();
      return raw.pendingActivities?.some(({ activityType: type }) => type?.name === "awaitJobEnd");
    });
    await forge.withoutServers(restore);
    await addWorker("second");
    await until(forge.user, id, "served again", isServedBy("second"), 60_000);
    await stop(forge.user, id);
    await forge.proveInvariants();
  },
  200_000,
);

slowTest(
  "Temporal has lost a signal that it acknowledged: the deployment gets another server",
  async () => {
    const first = await addWorker("third");
    const { deployment_id: id } = await deploy(forge.user);
    const wake = async () => {
      const sql = "select asked, told from deployments where deployment_id = $1";
      const [row] = await all<{ asked: number; told: number }>(forge.ctx.pool, sql, [id]);
      if (!row) throw new Error(`${id} is gone`);
      return row;
    };
    const isTold = async () => (await wake()).asked === (await wake()).told;
    await waitFor("all wakes to be delivered", isTold);
    await addWorker("fourth");
    await forge.own("temporal").kill();
    await first.die();
    await waitFor("a wake for the loss", async () => !(await isTold()));
    await execute(
      forge.ctx.pool,
      "update deployments set told = asked, seen_at = now() where deployment_id = $1",
      [id],
    );
    // Wait until every call to Temporal that is under way has timed out.
    await sleep(8_000);
    await forge.stack.startTemporal();
    await until(forge.user, id, "served again", isServedBy("fourth"), 60_000);
    await stop(forge.user, id);
    await forge.proveInvariants();
  },
  200_000,
);
