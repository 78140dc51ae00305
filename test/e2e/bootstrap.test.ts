import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootstrapWorkflowId } from "../../core/workflow-ids";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { untilEnded, untilStatus } from "../support/jobs";
import { Sshd } from "../support/sshd";
import { createTenant } from "../support/tenants";

/**
 * A machine becomes a worker over real SSH: its script, git, venv, pip and agent are real; of the
 * package manager there is a stand-in. One story: every step fails once, is shown, and mended.
 */
const directory = mkdtempSync(join(tmpdir(), "forge-ssh-"));
const keyDir = join(directory, "keys");
const repository = join(directory, "repository");
const remoteDir = join(directory, "worker");
const packageLog = join(directory, "apt.log");
const WORKER = "over-ssh";

const sshd = new Sshd(join(directory, "sshd"), ["docker", "podman"]);
let forge: Forge;

beforeAll(async () => {
  mkdirSync(join(keyDir, "local"), { recursive: true });
  Sshd.makeKey(join(keyDir, "local", "id_ed25519"));
  makeRepository();
  await sshd.start();
  forge = await startForge({
    FORGE_HEARTBEAT_TIMEOUT_S: "4",
    FORGE_SSH_KEY_DIR: keyDir,
    FORGE_SSH_ALLOW: "127.0.0.1/32",
    FORGE_COMPUTE_REPOSITORY: `file://${repository}`,
    FORGE_BOOTSTRAP_DIR: remoteDir,
    FORGE_BOOTSTRAP_READY_S: "5",
    HEARTBEAT_INTERVAL: "0.5",
    FORGE_BOOTSTRAP_ENV: JSON.stringify(agentEnvironment()),
  });
  const artifacts = join(forge.stack.storeDir, "artifacts");
  mkdirSync(artifacts, { recursive: true });
  // Configured before the store's directory was known.
  execFileSync("ln", ["-s", artifacts, join(directory, "artifacts")]);
});

afterAll(async () => {
  await forge?.stop();
  stopAgent();
  await sshd.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** What pip needs to know on this machine, and where the artifacts are. */
function agentEnvironment(): Record<string, string> {
  const ofPip = Object.entries(process.env).filter(([name]) =>
    /^(PIP|SSL|HTTPS?)_[A-Z_]+$/.test(name),
  );
  return {
    ...(Object.fromEntries(ofPip) as Record<string, string>),
    ARTIFACTS_DIR: join(directory, "artifacts"),
    HEARTBEAT_INTERVAL: "0.5",
    TEAM_TOKEN: "not-for-the-log",
  };
}

function git(...args: string[]): void {
  const identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
  execFileSync("git", [...identity, ...args], { cwd: repository, stdio: "ignore" });
}

function makeRepository(): void {
  for (const project of ["agent", "compute"]) {
    cpSync(join(checkoutRoot(), project), join(repository, project), { recursive: true });
  }
  execFileSync("git", ["init", "-q", "-b", "main", repository]);
  git("add", ".");
  git("commit", "-q", "-m", "agent and handlers");
}

function stopAgent(): void {
  const file = join(remoteDir, "agent.pid");
  if (!existsSync(file)) return;
  try {
    process.kill(Number(readFileSync(file, "utf8")), "SIGKILL");
  } catch {
    // It has ended.
  }
}

interface Detail {
  status: string;
  status_reason: string | null;
  error_code: string | null;
  bootstrap: {
    run: number;
    ssh_host_key: string | null;
    steps: { step: string; status: string; tries: number; error: string | null; log: string }[];
  };
}

const detail = async (): Promise<Detail> => await forge.user.get(`/api/workers/${WORKER}`);
const registration = (more: object = {}): object => ({
  ssh_host: "127.0.0.1",
  ssh_port: sshd.port,
  ssh_user: sshd.user,
  gpu_count: 0,
  gpu_type: "cpu",
  provider: "lambda",
  metadata: { instance_id: "i-1", region: "eu" },
  worker_id: WORKER,
  tags: ["ssh"],
  ...more,
});
const register = (body: object) => forge.user.call("POST", "/api/workers/register", body);
const bootstrapAgain = (body: object = {}) =>
  forge.user.call("POST", `/api/workers/${WORKER}/bootstrap`, body);

async function untilFailed(step: string): Promise<Detail> {
  const failed = await waitFor(
    `the failure of ${step}`,
    async () => {
      const worker = await detail();
      return worker.status !== "bootstrapping" && worker;
    },
    { timeoutMs: 60_000 },
  );
  expect(failed).toMatchObject({ status: "error", error_code: "bootstrap_failed" });
  expect(failed.status_reason).toMatch(`bootstrap failed at step "${step}": `);
  const at = failed.bootstrap.steps.findIndex((each) => each.step === step);
  const statuses = failed.bootstrap.steps.map((each) => each.status);
  expect(statuses).toEqual(
    statuses.map((_, n) => (n < at ? "completed" : n === at ? "failed" : "pending")),
  );
  return failed;
}

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
    ["ssh_host_key", { ssh_host_key: "MD5:00" }, /fingerprint/],
    ["gpu_type", { gpu_type: undefined }, /required|expected/i],
  ])("for its %s: %j", async (param, more, message) => {
    const answer = await register(registration(more));
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request", param, message: expect.stringMatching(message) } },
    });
  });

  test("for a worker key, which is for agents", async () => {
    const asWorker = await fetch(`${forge.stack.apiUrl}/api/workers/register`, {
      method: "POST",
      headers: {
        "x-service-api-key": forge.stack.keys.workerKey,
        "content-type": "application/json",
      },
      body: JSON.stringify(registration()),
    });
    expect(asWorker.status).toBe(403);
  });

  test("for another tenant's key file", async () => {
    const other = await createTenant(forge, "other");
    const path = join(keyDir, "local", "id_ed25519");
    for (const ssh_key_path of [path, "../local/id_ed25519", "id_ed25519"]) {
      const body = registration({ ssh_key_path });
      expect(await other.user.call("POST", "/api/workers/register", body)).toMatchObject({
        status: 400,
        body: { error: { param: "ssh_key_path" } },
      });
    }
  });
});

test("a plan says what would be run, and does nothing", async () => {
  const { status, body } = await register(registration({ plan: true, tags: ["it's; $(id)"] }));
  expect(status).toBe(200);
  const { plan, files } = body as {
    plan: { command: string | null }[];
    files: Record<string, string>;
  };
  expect(plan.map(({ command }) => command)).toEqual([
    null,
    ...["script", "packages", "repository", "requirements", "agent"].map(
      (step) => `sh '${remoteDir}/bootstrap.sh' ${step}`,
    ),
    null,
  ]);
  expect(files["bootstrap.sh"]).toMatch(/^#!\/bin\/sh/);
  expect(files.environment).toContain(`WORKER_TAGS='it'\\''s; $(id)'\n`);
  expect(files.environment).not.toContain("not-for-the-log");
  expect((await forge.user.call("GET", `/api/workers/${WORKER}`)).status).toBe(404);
});

describe("the story of one machine", () => {
  let jobId: string;

  test("its key is not authorized: step connect", async () => {
    expect(await register(registration())).toMatchObject({
      status: 201,
      body: { worker_id: WORKER, status: "bootstrapping", message: expect.any(String) },
    });
    expect((await register(registration())).status).toBe(409);
    const failed = await untilFailed("connect");
    expect(failed.status_reason).toMatch(/can't log in with this key/);
    expect((await forge.user.get<{ status: string }>(`/api/workers/${WORKER}`)).status).toBe(
      "error",
    );
  });

  test("another step seems to be at work: step script", async () => {
    sshd.authorize(readFileSync(join(keyDir, "local", "id_ed25519.pub"), "utf8"));
    sshd.fake("flock", "exit 1");
    expect(await bootstrapAgain()).toMatchObject({
      status: 202,
      body: { status: "bootstrapping" },
    });
    const failed = await untilFailed("script");
    expect(failed.status_reason).toMatch(/another step has been at work/);
    expect(failed.bootstrap).toMatchObject({ run: 2, ssh_host_key: sshd.hostKey });
    sshd.fake("flock", undefined);
  });

  test("the package manager fails: step packages; a job that needs the worker waits for it meanwhile", async () => {
    sshd.fake(
      "apt-get",
      `echo "$@" >>${packageLog}
       for what; do [ "$what" != docker.io ] || { echo "E: no candidate" >&2; exit 100; }; done`,
    );
    await bootstrapAgain();
    const job = await forge.user.submit("audit", {
      dataset_uri: "forge://artifacts/samples/rows.jsonl",
      resources: { tags: ["ssh"] },
    });
    jobId = job.job_id;
    await untilStatus(forge.user, jobId, ["provisioning_worker"]);
    expect(await forge.user.get(`/api/jobs/${jobId}`)).toMatchObject({
      pending_reason: { code: "provisioning", message: `${WORKER} is being set up for it` },
    });
    const failed = await untilFailed("packages");
    expect(failed.status_reason).toMatch(/E: no candidate\nexit code 100/);
    expect(failed.bootstrap.steps[2]?.tries).toBe(3);
    await untilStatus(forge.user, jobId, ["pending"]);
    // Each try asked for it, after an update.
    expect(readFileSync(packageLog, "utf8").match(/^install .*docker.io$/gm)).toHaveLength(3);
  });

  test("the repository has no such branch: step repository", async () => {
    sshd.fake(
      "apt-get",
      `touch ${join(directory, "sshd", "bin", "docker")}
      chmod +x ${join(directory, "sshd", "bin", "docker")}`,
    );
    git("branch", "-m", "main", "trunk");
    await bootstrapAgain();
    expect((await untilFailed("repository")).status_reason).toMatch(/find remote ref main/);
    git("branch", "-m", "trunk", "main");
  });

  test("a project is broken: step requirements", async () => {
    const file = join(repository, "compute", "pyproject.toml");
    const good = readFileSync(file, "utf8");
    writeFileSync(file, "[broken");
    git("commit", "-q", "-a", "-m", "broken");
    await bootstrapAgain();
    expect((await untilFailed("requirements")).status_reason).toMatch(/TOMLDecodeError/);
    writeFileSync(file, good);
    git("commit", "-q", "-a", "-m", "mended");
  }, 120_000);

  test("the server is killed in the middle of the longest step, and goes on after it is back", async () => {
    // The agent does not start yet, so that the next step has its failure too.
    sshd.fake("setsid", "exit 1");
    await bootstrapAgain();
    await waitFor("pip to be at work", async () => {
      const [, , , , requirements] = (await detail()).bootstrap.steps;
      return requirements?.status === "running" && /Processing/.test(requirements.log);
    });
    await forge.stack.server?.kill();
    await forge.stack.startServer();
    const failed = await untilFailed("agent");
    expect(failed.status_reason).toMatch(/the agent ended right after its start/);
    expect(failed.bootstrap.steps[4]).toMatchObject({ step: "requirements", tries: 2 });
  }, 180_000);

  test("the agent starts and is not heard: step ready", async () => {
    sshd.fake("setsid", 'echo $$ >agent.pid; echo "lost for words"; exec sleep 60');
    await bootstrapAgain();
    const failed = await untilFailed("ready");
    expect(failed.status_reason).toMatch(
      /lost for words\nthe agent was started, but not heard for 5 s/,
    );
    stopAgent();
    sshd.fake("setsid", undefined);
  }, 60_000);

  test("it becomes idle, and runs the job that waited for it", async () => {
    const python = await pythonEnvironment(saySilently);
    const generator = join(checkoutRoot(), "dev", "sample-data", "generate.py");
    const out = join(forge.stack.storeDir, "artifacts", "samples", "rows.jsonl");
    execFileSync(python, [generator, "--rows", "200", "--out", out]);
    await bootstrapAgain();
    expect(await untilEnded(forge.user, jobId, 60_000)).toMatchObject({
      status: "completed",
      worker_id: WORKER,
      attempts: 1,
    });
    const worker = await detail();
    expect(worker).toMatchObject({ status: "idle", status_reason: null, error_code: null });
    expect(worker.bootstrap.steps.map((step) => step.status)).toEqual(Array(7).fill("completed"));
    expect(await bootstrapAgain()).toMatchObject({
      status: 409,
      body: { error: { code: "worker_in_service" } },
    });
    await forge.proveInvariants();
  }, 120_000);

  test("no key and no secret is in its logs, in Temporal's histories, or in the server's log", async () => {
    const environment = readFileSync(join(remoteDir, "agent.env"), "utf8");
    const key = /SERVICE_API_KEY='(forge_worker_[^']+)'/.exec(environment)?.[1] ?? "";
    expect(key).not.toBe("");
    const history = await forge.ctx.temporal.workflow
      .getHandle(bootstrapWorkflowId(WORKER))
      .fetchHistory();
    const privateKey =
      readFileSync(join(keyDir, "local", "id_ed25519"), "utf8").split("\n")[1] ?? "";
    const said = [
      JSON.stringify(await detail()),
      JSON.stringify(history),
      readFileSync(forge.stack.logFile("forge-server"), "utf8"),
    ];
    for (const text of said) {
      for (const secret of [key, privateKey, "not-for-the-log"]) expect(text).not.toContain(secret);
    }
  });

  test("made anew, its host key is refused until it is given", async () => {
    await sshd.stop();
    sshd.makeHostKey();
    await sshd.start();
    stopAgent();
    await waitFor("its death", async () => (await detail()).status === "dead");
    await bootstrapAgain();
    const failed = await untilFailed("connect");
    expect(failed.status_reason).toMatch(`the host's key is ${sshd.hostKey}, not SHA256:`);
    await bootstrapAgain({ ssh_host_key: sshd.hostKey });
    await waitFor("it to be idle", async () => (await detail()).status === "idle", {
      timeoutMs: 60_000,
    });
  }, 120_000);

  test("decommissioned, its agent leaves and its key is dead", async () => {
    const pid = Number(readFileSync(join(remoteDir, "agent.pid"), "utf8"));
    expect((await forge.user.call("DELETE", `/api/workers/${WORKER}`)).status).toBe(200);
    await waitFor("the agent to leave", () => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
    expect(readFileSync(join(remoteDir, "agent.log"), "utf8")).toMatch(/the key is refused/);
  });
});
