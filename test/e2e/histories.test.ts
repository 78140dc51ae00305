/**
 * Replays histories that were recorded with a real server, using the current workflow code. A code
 * change that would break running jobs fails here. RECORD_HISTORIES=1 records the histories of a
 * new release.
 */

import { DefaultLogger, Runtime } from "@temporalio/worker";
import { deploymentWorkflowId, jobWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { deploy, serving, servingWorker, stop, until } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import {
  inspectHistory,
  readHistory,
  recordedHistories,
  recordedNames,
  replay,
  replayRecorded,
} from "../support/histories";
import { AUDIT, untilEnded } from "../support/jobs";
import type { ServingWorker } from "../support/serving-worker";

beforeAll(() => {
  Runtime.install({ logger: new DefaultLogger("ERROR") });
});

describe("recorded histories", () => {
  const files = recordedHistories();

  test("cover all paths of jobs, pipelines and deployments, and a machine's setup", () => {
    expect(recordedNames()).toEqual([
      "attempts-used-up",
      "bootstrap",
      "bootstrap-failed",
      "cancelled",
      "deployment",
      "deployment-replaced",
      "failure",
      "pipeline-approval",
      "pipeline-cancel",
      "pipeline-completed",
      "pipeline-gate",
      "pipeline-rejected",
      "pipeline-rerun",
      "pipeline-resume",
      "pipeline-reuse",
      "pipeline-sweep",
      "submitted-attempts-used-up",
      "submitted-cancelled",
      "submitted-failure",
      "submitted-success",
      "submitted-worker-lost",
      "success",
      "worker-lost",
    ]);
  });

  describe("replayed", () => {
    let errors: Map<string, Error | undefined>;

    beforeAll(async () => {
      errors = await replayRecorded(files);
    });

    test.each(files)("%s", (file) => {
      expect([...errors.keys()]).toContain(file);
      expect(errors.get(file)).toBeUndefined();
    });
  });

  test("a history that today's code would not produce is refused", async () => {
    const text = JSON.stringify(readHistory("0.2.0/worker-lost.json")).replaceAll(
      '"attempt-2"',
      '"attempt-7"',
    );
    await expect(replay(JSON.parse(text), "job:recorded")).rejects.toThrow(/[Nn]ondetermini/);
  });
});

describe("today's code", () => {
  let forge: Forge;

  beforeAll(async () => {
    forge = await startForge({
      FORGE_HEARTBEAT_TIMEOUT_S: "3",
      FORGE_DEPLOYMENT_STOP_GRACE_S: "2",
    });
  });

  afterAll(async () => {
    await forge?.stop();
  });

  const ways: Record<string, () => Promise<string>> = {
    success: async () => {
      const worker = await forge.worker("good");
      worker.startHeartbeats(200);
      const { job_id } = await forge.user.submit("audit", AUDIT);
      await worker.complete(await worker.take());
      worker.stopHeartbeats();
      return job_id;
    },
    failure: async () => {
      const worker = await forge.worker("bad");
      worker.startHeartbeats(200);
      const { job_id } = await forge.user.submit("audit", AUDIT);
      await worker.fail(await worker.take());
      worker.stopHeartbeats();
      return job_id;
    },
    "worker-lost": async () => {
      const mortal = await forge.worker("mortal");
      const { job_id } = await forge.user.submit("audit", AUDIT);
      await mortal.take();
      const heir = await forge.worker("heir");
      heir.startHeartbeats(200);
      await heir.complete(await heir.take());
      heir.stopHeartbeats();
      return job_id;
    },
    "attempts-used-up": async () => {
      const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
      for (const name of ["first", "second"]) {
        const worker = await forge.worker(name);
        worker.startHeartbeats(200);
        await worker.take();
        worker.stopHeartbeats();
      }
      return job_id;
    },
    // Simulates a cancel in Temporal's UI: the workflow cancels the job, and the worker gets a
    // command.
    cancelled: async () => {
      const worker = await forge.worker("told");
      worker.startHeartbeats(200);
      const { job_id } = await forge.user.submit("audit", AUDIT);
      const job = await worker.take();
      const handle = forge.ctx.temporal.workflow.getHandle(jobWorkflowId(job_id));
      await waitFor(
        "the workflow",
        async () => (await handle.describe()).status.name === "RUNNING",
      );
      await handle.cancel();
      await waitFor("the command", async () => (await worker.heartbeat()).commands.length === 1);
      await worker.fail(job);
      worker.stopHeartbeats();
      return job_id;
    },
  };

  test.each(Object.entries(ways))("%s: a small history, free of payloads", async (name, go) => {
    const jobId = await go();
    const job = await untilEnded(forge.user, jobId);
    const [status, code] = {
      success: ["completed", null],
      failure: ["failed", "job_error"],
      "worker-lost": ["completed", null],
      "attempts-used-up": ["failed", "worker_lost"],
      cancelled: ["failed", "cancelled"],
    }[name] as [string, string | null];
    expect(job).toMatchObject({ status, error_code: code });
    await forge.proveInvariants();

    const handle = forge.ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));
    const history = await inspectHistory(`submitted-${name}`, handle);
    // The maximum number of events. It is lower for a job that ends before its workflow starts,
    // because such a workflow needs only one workflow task.
    const most = name === "success" || name === "failure" ? 7 : 29;
    expect(history.match(/"eventId"/g)?.length).toBeLessThanOrEqual(most);
    expect(history).toContain(jobId);
    expect(history).not.toContain("data.parquet");
    const { searchAttributes } = await handle.describe();
    expect(searchAttributes).toMatchObject({ ForgeJobType: ["audit"], ForgeUserId: ["local"] });
  });

  let first: ServingWorker;
  const heirs: ServingWorker[] = [];

  test.each([
    ["deployment", async () => undefined],
    [
      "deployment-replaced",
      async (id: string) => {
        await first.die();
        heirs.push(await servingWorker(forge, "heir-of-it"));
        await until(forge.user, id, "placed again", (now) => serving(now).join() === "heir-of-it");
      },
    ],
  ])("%s: a small history, free of payloads", async (name, live) => {
    first = await servingWorker(forge, name);
    heirs.push(first);
    const { deployment_id: id } = await deploy(forge.user, { params: { secret: "payload" } });
    const handle = forge.ctx.temporal.workflow.getHandle(deploymentWorkflowId(id));
    await waitFor("the workflow", async () => (await handle.describe()).status.name === "RUNNING");
    await live(id);
    await stop(forge.user, id);
    await waitFor("its end", async () => (await handle.describe()).status.name === "COMPLETED");
    await Promise.all(heirs.splice(0).map((worker) => worker.die()));
    await forge.endTest();

    const history = await inspectHistory(name, handle);
    expect(history.match(/"eventId"/g)?.length).toBeLessThan(60);
    expect(history).toContain(id);
    expect(history).not.toMatch(/payload_|"secret"|inference_url|127\.0\.0\.1:\d+\/v1/);
    const { searchAttributes } = await handle.describe();
    expect(searchAttributes).toMatchObject({ ForgeUserId: ["local"] });
  });
});
