/** The database's clock is a day ahead, and is corrected while no server runs. */

import { waitFor } from "../../dev/stack/wait";
import { maybeOne } from "../../platform/postgres/pool";
import { readRecord } from "../support/billing";
import { deploy, stop } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { ServingWorker } from "../support/serving-worker";
import { useSettableClock } from "../support/settable-clock";

const DAY_S = 86_400;

let forge: Forge;
let setClock: (byS: number) => Promise<void>;

beforeAll(async () => {
  forge = await startForge({ FORGE_RECONCILE_AFTER_S: "1" }, { own: ["server", "temporal"] });
  setClock = await useSettableClock(forge);
}, 120_000);

afterAll(async () => {
  await forge?.stop();
});

async function setAhead(): Promise<void> {
  await setClock(DAY_S);
  await waitFor("the step to be recorded", async () =>
    maybeOne(forge.ctx.pool, "select from clock_steps where by_s > 5"),
  );
}

const setRightWhileDown = () => forge.withoutServers(() => setClock(0));

test("pending outbox entries are delivered, and a deployment is billed for its real lifetime", async () => {
  const serving = await forge.worker("serves");
  await serving.register(undefined, { job_types: ["deploy"] });
  const server = new ServingWorker(serving).start();
  const deployment = await deploy(forge.user);
  const began = performance.now();
  await setAhead();
  const worker = await forge.worker("w");
  worker.startHeartbeats();
  const { job_id: jobId } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 3_600 });
  const job = await worker.take();
  forge.own("temporal").signal("SIGSTOP");
  expect((await worker.complete(job)).status).toBe(200);
  const down = performance.now();
  await setRightWhileDown();
  const downS = (performance.now() - down) / 1000;
  forge.own("temporal").signal("SIGCONT");
  expect((await untilEnded(forge.user, jobId, 60_000)).status).toBe("completed");
  worker.stopHeartbeats();
  await stop(forge.user, deployment.deployment_id);
  const livedS = (performance.now() - began) / 1000;
  const { metrics } = await readRecord(forge.user, deployment.job_id);
  const billedS = (metrics.deployment_lifetime_days ?? 0) * DAY_S;
  // The bill may leave out the downtime, because Forge can't know how long no server ran.
  expect(billedS).toBeGreaterThan(livedS - downS - 10);
  expect(billedS).toBeLessThan(livedS + 2);
  await server.die();
  await forge.endTest();
}, 180_000);
