/**
 * Processes that pause while they write the files of a stopped deployment. When they continue, the
 * database has been restored to a state in which the deployment was not stopped.
 */

import { json } from "node:stream/consumers";
import { createDeploymentActivities } from "../../activities/deployments/deployments";
import { artifactPrefix, billingRecordKey, MANIFEST_FILE } from "../../core/artifacts/artifacts";
import { waitFor } from "../../dev/stack/wait";
import { all, maybeOne } from "../../platform/postgres/pool";
import type { ObjectStore } from "../../platform/store/object-store";
import { findDeploymentManifest } from "../../services/artifacts/artifacts";
import { backUp } from "../support/backup";
import { deploy, ServingWorkers, stop } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { asActivity, pausingStore } from "../support/late-activity";
import { slowTestAlone } from "../support/slow";

let forge: Forge;
const serving = new ServingWorkers();

beforeAll(async () => {
  forge = await startForge({ FORGE_HEARTBEAT_TIMEOUT_S: "600" }, { split: true, own: ["server"] });
}, 120_000);

afterAll(async () => {
  await serving.end();
  await forge?.stop();
});

const lookAfter = (store: ObjectStore, deploymentId: string): Promise<unknown> => {
  const { lookAfterDeployment } = createDeploymentActivities({ ...forge.ctx, store });
  return asActivity("lookAfterDeployment", () => lookAfterDeployment({ deploymentId })).catch(
    String,
  );
};

/**
 * A deployment whose stop was accepted after a backup. No Temporal worker runs, so no process works
 * on the stop.
 */
async function stopped(workerId: string) {
  await serving.start(forge, workerId);
  const { deployment_id: id, job_id: jobId } = await deploy(forge.user);
  const restore = await backUp(forge.stack.databaseUrl);
  await forge.stack.temporalWorker?.kill();
  await forge.user.post(`/api/deployments/${id}/stop`, {});
  /** Restores the backup. The deployment is active again. */
  const loseStop = (): Promise<void> => forge.withoutServers(restore);
  return { id, jobId, loseStop };
}

/**
 * Starts the activity `lookAfterDeployment`. Returns as soon as the activity pauses before its
 * first write to the store.
 */
async function lateLook(id: string) {
  const late = pausingStore(forge.ctx.store);
  const looking = lookAfter(late.store, id);
  await late.untilPaused();
  return { ...late, looking };
}

/** A process that pauses before it writes the final manifest of a stopped deployment. */
async function lateManifest(id: string) {
  const noManifest = Object.create(forge.ctx.store, {
    put: {
      value: async (key: string, body: Buffer) => {
        if (key.endsWith(MANIFEST_FILE)) throw new Error("the process ends here");
        await forge.ctx.store.put(key, body);
      },
    },
  }) as ObjectStore;
  await waitFor("the deployment to be stopped", async () => {
    await lookAfter(noManifest, id);
    return (await statusOf(id)) === "stopped";
  });
  return await lateLook(id);
}

const statusOf = async (id: string): Promise<string | undefined> => {
  const query = "select status from deployments where deployment_id = $1";
  return (await maybeOne<{ status: string }>(forge.ctx.pool, query, [id]))?.status;
};

const read = (key: string): Promise<unknown> => json(forge.ctx.store.read(key));

const recordOf = (jobId: string) =>
  forge.user.get<{ metrics: { deployment_lifetime_days: number }; total_cost_usd: number }>(
    `/api/billing/records/${jobId}`,
  );

const untilFinal = (id: string): Promise<unknown> =>
  waitFor("the manifest to be final", async () => {
    return (await findDeploymentManifest(forge.ctx.pool, id))?.status === "stopped";
  });

/** Expects that the manifest in the registry and its file agree with the bill. */
async function expectManifestOf(id: string, jobId: string): Promise<void> {
  await untilFinal(id);
  const manifest = await findDeploymentManifest(forge.ctx.pool, id);
  const { metrics, total_cost_usd: cost } = await recordOf(jobId);
  expect(manifest).toMatchObject({
    cost_estimate_usd: cost,
    metrics: { deployment_lifetime_days: metrics.deployment_lifetime_days },
  });
  expect(await read(`${artifactPrefix("deploy", id)}${MANIFEST_FILE}`)).toEqual(manifest);
}

slowTestAlone(
  "the bill's file is that of the stop in the database",
  async () => {
    const { id, jobId, loseStop } = await stopped("box-1");
    const late = await lateLook(id);
    await loseStop();
    await forge.stack.startTemporalWorker();
    await stop(forge.user, id);
    late.resume();
    await late.looking;
    const file = await read(billingRecordKey("local", jobId));
    expect(file).toMatchObject({ metrics: (await recordOf(jobId)).metrics });
  },
  180_000,
);

slowTestAlone(
  "so it is if no other process has looked after the deployment meanwhile",
  async () => {
    const { id, jobId, loseStop } = await stopped("box-4");
    const late = await lateLook(id);
    await loseStop();
    await forge.user.post(`/api/deployments/${id}/stop`, {});
    const live = "select from placements where deployment_id = $1 and state <> 'ended'";
    await waitFor("its server to end", async () => {
      return (await all(forge.ctx.pool, live, [id])).length === 0;
    });
    late.resume();
    await late.looking;
    expect(await statusOf(id)).toBe("stopped");
    await forge.stack.startTemporalWorker();
    await expectManifestOf(id, jobId);
    const file = await read(billingRecordKey("local", jobId));
    expect(file).toMatchObject({ metrics: (await recordOf(jobId)).metrics });
  },
  180_000,
);

slowTestAlone(
  "the manifest is that of the stop in the database, if the old one is written afterwards",
  async () => {
    const { id, jobId, loseStop } = await stopped("box-2");
    const late = await lateManifest(id);
    await loseStop();
    await forge.stack.startTemporalWorker();
    await stop(forge.user, id);
    await untilFinal(id);
    late.resume();
    await late.looking;
    await expectManifestOf(id, jobId);
  },
  180_000,
);

slowTestAlone(
  "so it is under a metered card, where both stops cost the same",
  async () => {
    const { admin, user } = forge;
    const path = "/api/admin/users/local/rate-card";
    expect((await admin.call("PUT", path, { rate_card: "metered" })).status).toBe(200);
    const { id, jobId, loseStop } = await stopped("box-5");
    const late = await lateManifest(id);
    await loseStop();
    await forge.stack.startTemporalWorker();
    await stop(user, id);
    await untilFinal(id);
    late.resume();
    await late.looking;
    await expectManifestOf(id, jobId);
    expect((await admin.call("PUT", path, { rate_card: "default" })).status).toBe(200);
  },
  180_000,
);

slowTestAlone(
  "the manifest is that of the stop in the database, if the old one is written before",
  async () => {
    const { id, jobId, loseStop } = await stopped("box-3");
    const late = await lateManifest(id);
    await loseStop();
    await forge.stack.startTemporalWorker();
    late.resume();
    await late.looking;
    expect((await findDeploymentManifest(forge.ctx.pool, id))?.status).not.toBe("stopped");
    await stop(forge.user, id);
    await expectManifestOf(id, jobId);
  },
  180_000,
);
