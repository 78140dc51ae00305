/**
 * Forge sets up a machine over SSH as a worker. The tests in test/slow make each step and the
 * server fail.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createBootstrapActivities } from "../../activities/fleet/bootstrap";
import { bootstrapWorkflowId } from "../../core/workflow-ids";
import { ApiClient } from "../../dev/api-client";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { all, maybeOne } from "../../platform/postgres/pool";
import { appendStepLog, endStep, startStep } from "../../services/fleet/bootstrap-steps";
import { markDead } from "../../services/fleet/heartbeats";
import { inspectHistory } from "../support/histories";
import { untilEnded, untilStatus } from "../support/jobs";
import { Machine } from "../support/machine";
import { slowTest } from "../support/slow";
import { createTenant } from "../support/tenants";
import { TestWorker } from "../support/test-worker";

const machine = new Machine();

beforeAll(async () => {
  await machine.start();
});

afterAll(async () => {
  await machine.stop();
});

describe("registration over SSH is refused", () => {
  test.each([
    ["ssh_host", { ssh_host: "169.254.169.254" }, /does not allow connections/],
    ["ssh_host", { ssh_host: "10.1.2.3" }, /does not allow connections/],
    ["ssh_host", { ssh_host: "-oProxyCommand=id" }, /host name/],
    ["ssh_host", { ssh_host: "a;id" }, /host name/],
    ["ssh_user", { ssh_user: "root; id" }, /user's name/],
    ["ssh_user", { ssh_user: "$(id)" }, /user's name/],
    ["ssh_key_path", { ssh_key_path: "../../../etc/shadow" }, /no key file/],
    ["ssh_key_path", { ssh_key_path: "/etc/ssh/ssh_host_ed25519_key" }, /no key file/],
    ["ssh_key_path", { ssh_key_path: "none" }, /no key file/],
    ["ssh_key_path", { ssh_key_path: "~/../../etc/shadow" }, /no key file/],
    ["ssh_key_path", { ssh_key_path: "~root/id_ed25519" }, /must be a path/],
    ["ssh_host_key", { ssh_host_key: "MD5:00" }, /fingerprint/],
    ["gpu_type", { gpu_type: undefined }, /required|expected/i],
  ])("for its %s: %j", async (param, more, message) => {
    const answer = await machine.register(more);
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request", param, message: expect.stringMatching(message) } },
    });
  });

  test("with a worker key", async () => {
    const asWorker = await fetch(`${machine.forge.stack.apiUrl}/api/workers/register`, {
      method: "POST",
      headers: {
        "x-service-api-key": machine.forge.stack.keys.workerKey,
        "content-type": "application/json",
      },
      body: JSON.stringify(machine.registration()),
    });
    expect(asWorker.status).toBe(403);
  });

  test("with another tenant's key file", async () => {
    const other = await createTenant(machine.forge, "other");
    for (const ssh_key_path of [machine.keyFile, "../local/id_ed25519", "id_ed25519"]) {
      const body = machine.registration({ ssh_key_path });
      expect(await other.user.call("POST", "/api/workers/register", body)).toMatchObject({
        status: 400,
        body: { error: { param: "ssh_key_path" } },
      });
    }
  });
});

test.each(["~/id_ed25519", "~/.ssh/id_ed25519"])(
  "a key path may start with a home directory: %s",
  async (path) => {
    const { status } = await machine.register({ plan: true, ssh_key_path: path });
    expect(status).toBe(200);
  },
);

test("a plan shows what would run, and runs nothing", async () => {
  const { status, body } = await machine.register({ plan: true, tags: ["it's; $(id)"] });
  expect(status).toBe(200);
  const { plan, files } = body as {
    plan: { command: string | null }[];
    files: Record<string, string>;
  };
  expect(plan.map(({ command }) => command)).toEqual([
    null,
    ...["script", "packages", "repository", "requirements", "agent"].map(
      (step) => `sh '${machine.remoteDir}/bootstrap.sh' ${step}`,
    ),
    null,
  ]);
  expect(files["bootstrap.sh"]).toMatch(/^#!\/bin\/sh/);
  expect(files.environment).toContain('WORKER_TAGS="it\'s; \\$(id),eu"\n');
  expect(files.environment).not.toContain("not-for-the-log");
  expect((await machine.forge.user.call("GET", `/api/workers/${machine.id}`)).status).toBe(404);
});

describe("the life cycle of one machine", () => {
  let jobId: string;

  test("its key is not authorized: step connect reports it", async () => {
    const { user } = machine.forge;
    const { job_id: waiting } = await user.submit("audit", {
      dataset_uri: "s3://bucket/data.parquet",
      resources: { tags: ["ssh", "eu"] },
    });
    expect(await machine.register()).toMatchObject({
      status: 201,
      body: { worker_id: machine.id, status: "bootstrapping", message: expect.any(String) },
    });
    expect((await machine.register()).status).toBe(409);
    const failed = await machine.untilFailed("connect");
    expect(failed.status_reason).toMatch(/can't log in with this key/);
    const handle = machine.forge.ctx.temporal.workflow.getHandle(bootstrapWorkflowId(machine.id));
    expect(await inspectHistory("bootstrap-failed", handle)).not.toContain("can't log in");
    // The waiting job does not fail, because another machine may register.
    await waitFor("its job to be pending again", () =>
      maybeOne(
        machine.forge.ctx.pool,
        "select from jobs where job_id = $1 and status = 'pending' and error_code is null",
        [waiting],
      ),
    );
    await user.post(`/api/jobs/${waiting}/cancel`, {});
    expect(await untilEnded(user, waiting)).toMatchObject({ error_code: "cancelled" });
  });

  test("set up again, it becomes idle and runs the waiting job", async () => {
    const { user } = machine.forge;
    const python = await pythonEnvironment(saySilently);
    const generator = join(checkoutRoot(), "dev", "sample-data", "generate.py");
    const out = join(machine.forge.stack.storeDir, "artifacts", "samples", "rows.jsonl");
    execFileSync(python, [generator, "--rows", "200", "--out", out]);
    machine.authorizeKey();
    machine.fakePackages();
    expect(await machine.bootstrapAgain()).toMatchObject({
      status: 202,
      body: { status: "bootstrapping" },
    });
    // A second request during the bootstrap changes nothing.
    expect(await machine.bootstrapAgain()).toMatchObject({
      status: 202,
      body: { bootstrap: { run: 2 } },
    });
    const audit = {
      dataset_uri: "forge://artifacts/samples/rows.jsonl",
      resources: { tags: ["ssh", "eu"] },
    };
    jobId = (await user.submit("audit", audit)).job_id;
    const { job_id: unwanted } = await user.submit("audit", audit);
    await untilStatus(user, jobId, ["provisioning_worker"]);
    expect(await user.get(`/api/jobs/${jobId}`)).toMatchObject({
      pending_reason: { code: "provisioning", message: `${machine.id} is being set up for it` },
    });
    expect(await user.post(`/api/jobs/${unwanted}/cancel`, {})).toMatchObject({
      status: "failed",
      error_code: "cancelled",
    });
    expect(await untilEnded(user, jobId, 300_000)).toMatchObject({
      status: "completed",
      worker_id: machine.id,
      attempts: 1,
    });
    const worker = await machine.detail();
    expect(worker).toMatchObject({ status: "idle", status_reason: null, error_code: null });
    expect(worker.bootstrap.steps.map((step) => step.status)).toEqual(Array(7).fill("completed"));
    // A retry of an activity whose result did not reach Temporal changes nothing.
    const { markReady, failBootstrap } = createBootstrapActivities(machine.forge.ctx);
    const run = { workerId: machine.id, run: 2 };
    await markReady(run);
    await failBootstrap({ ...run, step: "ready" });
    // Neither do late writes of the replaced run.
    const { pool } = machine.forge.ctx;
    const replaced = { workerId: machine.id, run: 1, step: "script" as const };
    await startStep(pool, replaced);
    await appendStepLog(pool, replaced, "late output");
    await endStep(pool, replaced, "late error");
    expect((await machine.detail()).bootstrap).toEqual(worker.bootstrap);
    expect(worker.bootstrap.ssh_host_key).toBe(machine.sshd.hostKey);
    expect(await machine.bootstrapAgain()).toMatchObject({
      status: 409,
      body: { error: { code: "worker_in_service" } },
    });
    await machine.forge.proveInvariants();
  }, 330_000);

  test("no key and no secret is in its logs, in Temporal's histories, or in the server's log", async () => {
    const environment = machine.read("agent.env");
    const key = /SERVICE_API_KEY="(forge_worker_[^"]+)"/.exec(environment)?.[1] ?? "";
    expect(key).not.toBe("");
    const handle = machine.forge.ctx.temporal.workflow.getHandle(bootstrapWorkflowId(machine.id));
    const history = await inspectHistory("bootstrap", handle);
    const privateKey = readFileSync(machine.keyFile, "utf8").split("\n")[1] ?? "";
    const said = [
      JSON.stringify(await machine.detail()),
      history,
      readFileSync(machine.forge.stack.logFile("forge-server"), "utf8"),
    ];
    for (const text of said) {
      for (const secret of [key, privateKey, "not-for-the-log"]) expect(text).not.toContain(secret);
    }
  });

  test("its key is for this machine only, and ends with the key that requested it", async () => {
    const { forge } = machine;
    const key = /forge_worker_[^"]+/.exec(machine.read("agent.env"))?.[0] ?? "";
    const other = new TestWorker(new ApiClient(forge.stack.apiUrl, key), "another-box");
    expect(await other.register()).toMatchObject({
      status: 409,
      body: { error: { code: "quota_exceeded" } },
    });
    const { api_keys: keys } = await forge.user.get<{ api_keys: Record<string, unknown>[] }>(
      "/api/auth/api-keys",
    );
    const own = keys.find(({ name, revoked_at }) => name === `worker ${machine.id}` && !revoked_at);
    expect(own).toMatchObject({ scope: "worker", workers: 1 });
    const { key_id: asking } = await forge.user.get<{ key_id: string }>("/api/auth/ping");
    const [row] = await all(
      forge.ctx.pool,
      "select made_by_key_id from api_keys where key_id = $1",
      [own?.key_id],
    );
    expect(row).toEqual({ made_by_key_id: asking });
  });

  test("a key that was revoked is not installed, and the agent keeps its own", async () => {
    const { user } = machine.forge;
    const made = { name: "of a paused server", scope: "worker" };
    const { key_id: id, key } = await user.post<Record<string, string>>("/api/auth/api-keys", made);
    expect((await user.call("DELETE", `/api/auth/api-keys/${id}`)).status).toBe(200);
    const [installed, pid] = [machine.read("agent.env"), machine.agentPid];
    const script = join(machine.remoteDir, "bootstrap.sh");
    const { status, stderr } = spawnSync("sh", [script, "agent"], { input: `${key}\n` });
    expect([status, String(stderr)]).toEqual([1, expect.stringContaining("refuses this key")]);
    expect([machine.read("agent.env"), machine.agentPid]).toEqual([installed, pid]);
  });

  slowTest(
    "reinstalled, its new host key is refused until it is given",
    async () => {
      await machine.sshd.stop();
      machine.sshd.makeHostKey();
      await machine.sshd.start();
      machine.stopAgent();
      await machine.untilStatus("dead");
      await machine.bootstrapAgain();
      const failed = await machine.untilFailed("connect");
      expect(failed.status_reason).toMatch(
        `the host's key is ${machine.sshd.hostKey}, not SHA256:`,
      );
      // The worker's agent is stopped, so it sends no heartbeats. The worker still must not become
      // `dead`, because that would hide the failed bootstrap.
      const { pool } = machine.forge.ctx;
      const [heard] = await all<{ seq: number }>(
        pool,
        "select heartbeat_seq as seq from workers where worker_id = $1",
        [machine.id],
      );
      await markDead(pool, machine.id, heard?.seq ?? 0, "silent");
      expect((await machine.untilFailed("connect")).status_reason).toBe(failed.status_reason);
      await machine.bootstrapAgain({ ssh_host_key: machine.sshd.hostKey });
      await machine.untilStatus("idle");
    },
    120_000,
  );

  test("decommissioned, its agent exits and its key is revoked", async () => {
    const pid = machine.agentPid ?? 0;
    const { status } = await machine.forge.user.call("DELETE", `/api/workers/${machine.id}`);
    expect(status).toBe(200);
    await waitFor("the agent to leave", () => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
    expect(machine.read("agent.log")).toMatch(/the API key is refused/);
  });
});
