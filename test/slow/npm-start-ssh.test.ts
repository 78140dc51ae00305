/**
 * Tests that `npm start` without settings can set up a machine over SSH as a worker. `npm start`
 * signs in with the SSH keys of the user who runs it (`~/.ssh`), and sends its own agent and
 * handlers to the machine.
 */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheDir } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { untilEnded } from "../support/jobs";
import { variablesOfPip } from "../support/machine";
import { NpmStart } from "../support/npm-start";
import { Sshd } from "../support/sshd";

const directory = mkdtempSync(join(tmpdir(), "forge-ssh-"));
/** The home directory of two users: the one who runs `npm start`, and the SSH user. */
const home = join(directory, "user");
const stackHome = join(directory, "stack");
const workers = join(home, ".forge-worker");
let sshd: Sshd;
let stack: NpmStart | undefined;

beforeAll(async () => {
  const keyFile = join(home, ".ssh", "id_ed25519");
  mkdirSync(join(home, ".ssh"), { recursive: true });
  Sshd.makeKey(keyFile);
  // Hide sudo, so that the bootstrap installs no service on this machine.
  const without = ["docker", "podman", "sudo"];
  sshd = new Sshd(join(directory, "sshd"), { home, without, variables: variablesOfPip() });
  // Let the bootstrap find a container runtime, so that it does not install one.
  sshd.fake("docker", "");
  sshd.authorize(readFileSync(`${keyFile}.pub`, "utf8"));
  await sshd.start();
});

afterAll(async () => {
  await stack?.stop();
  killAgents();
  await sshd?.stop();
  rmSync(directory, { recursive: true, force: true });
});

function killAgents(): void {
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  for (const file of files.filter((name) => name.endsWith("/agent.pid"))) {
    try {
      process.kill(Number(readFileSync(join(directory, file), "utf8")), "SIGKILL");
    } catch {
      // The process has ended.
    }
  }
}

interface Detail {
  status: string;
  status_reason: string | null;
  bootstrap: { steps: { step: string; status: string; log: string }[] };
}

test("npm start sets up a machine over SSH without any setting, and it runs a job", async () => {
  // Use the machine's cache directory. By default, it would be in this test's home.
  const env = { HOME: home, FORGE_CACHE_DIR: cacheDir(), FORGE_AGENTS: "0" };
  stack = NpmStart.run(stackHome, env);
  const user = await stack.user();
  const { status, body } = await user.call<{ worker_id: string }>("POST", "/api/workers/register", {
    ssh_host: "127.0.0.1",
    ssh_port: sshd.port,
    ssh_user: sshd.user,
    gpu_count: 0,
    gpu_type: "cpu",
  });
  expect({ status, body }).toMatchObject({ status: 201, body: { status: "bootstrapping" } });
  const { worker_id: id } = body;

  const rows = join(stackHome, "store", "artifacts", "rows.jsonl");
  mkdirSync(join(stackHome, "store", "artifacts"), { recursive: true });
  writeFileSync(rows, '{"prompt": "What is 2 + 2?", "response": "4"}\n'.repeat(20));
  const { job_id } = await user.submit("audit", { dataset_uri: "forge://artifacts/rows.jsonl" });

  const worker = await waitFor(
    "the end of its setup",
    async () => {
      const detail = await user.get<Detail>(`/api/workers/${id}`);
      return detail.status !== "bootstrapping" && detail;
    },
    { timeoutMs: 300_000 },
  );
  expect(worker.status_reason).toBeNull();
  expect(worker.bootstrap.steps.map((step) => step.status)).toEqual(Array(7).fill("completed"));
  const repository = worker.bootstrap.steps.find(({ step }) => step === "repository");
  expect(repository?.log).toContain("sent by the server");
  expect(await untilEnded(user, job_id, 60_000)).toMatchObject({
    status: "completed",
    worker_id: id,
    result: { num_rows: expect.any(Number) },
  });
  expect(readdirSync(workers)).toEqual([id]);
}, 400_000);
