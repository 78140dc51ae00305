/**
 * Makes every step of a bootstrap fail, checks the reported failure, and removes its cause. In the
 * end, the bootstrap succeeds. The server is also killed during the longest step.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../../dev/stack/wait";
import { Machine, READY_S } from "../support/machine";

const machine = new Machine(true);

beforeAll(async () => {
  await machine.start();
  machine.authorizeKey();
});

afterAll(async () => {
  await machine.stop();
});

test("a hanging machine blocks neither the removal of its worker nor the server's shutdown", async () => {
  machine.sshd.fake("flock", "exec sleep 600");
  await machine.register();
  await waitFor("the step to hang", async () => {
    const [, script] = (await machine.detail()).bootstrap.steps;
    return script?.status === "running";
  });
  const asked = performance.now();
  await machine.forge.stack.server?.stop();
  expect(performance.now() - asked).toBeLessThan(12_000);
  await machine.forge.stack.startServer();
  await machine.forge.user.call("DELETE", `/api/workers/${machine.id}`);
  machine.sshd.fake("flock", undefined);
}, 60_000);

test("another step seems to be running: step script", async () => {
  machine.sshd.fake("flock", "exit 1");
  await machine.register();
  const failed = await machine.untilFailed("script");
  expect(failed.status_reason).toMatch(/another step has been running/);
  expect(failed.bootstrap).toMatchObject({ run: 2, ssh_host_key: machine.sshd.hostKey });
  machine.sshd.fake("flock", undefined);
});

test("the package manager fails: step packages, three times", async () => {
  const log = join(machine.directory, "apt.log");
  machine.sshd.fake(
    "apt-get",
    `echo "$@" >>${log}
     for what; do [ "$what" != docker.io ] || { echo "E: no candidate" >&2; exit 100; }; done`,
  );
  await machine.bootstrapAgain();
  const failed = await machine.untilFailed("packages");
  expect(failed.status_reason).toMatch(/E: no candidate\nexit code 100/);
  expect(failed.bootstrap.steps[2]?.tries).toBe(3);
  // Each of the three tries ran `apt-get install`.
  expect(readFileSync(log, "utf8").match(/^install .*docker.io$/gm)).toHaveLength(3);
  machine.fakePackages();
});

test("the repository has no such branch: step repository", async () => {
  machine.git("branch", "-m", "main", "trunk");
  await machine.bootstrapAgain();
  expect((await machine.untilFailed("repository")).status_reason).toMatch(/find remote ref main/);
  machine.git("branch", "-m", "trunk", "main");
});

test("the project can't be installed: step requirements", async () => {
  const mend = machine.breakProject();
  await machine.bootstrapAgain();
  expect((await machine.untilFailed("requirements")).status_reason).toMatch(/TOMLDecodeError/);
  mend();
}, 120_000);

test("the server is killed in the middle of the longest step, and continues after its restart", async () => {
  // Keep the agent from starting, so that the step `agent` fails once, too.
  machine.sshd.fake("setsid", "exit 1");
  await machine.bootstrapAgain();
  // Everything is installed already, so pip runs for a few seconds only. Poll every 20 ms, to see
  // it run. The time-out is long, because the steps before pip take half a minute on a busy
  // machine.
  const isAtWork = async (): Promise<boolean> => {
    const [, , , , requirements] = (await machine.detail()).bootstrap.steps;
    return requirements?.status === "running" && requirements.log.includes("Requirement already");
  };
  await waitFor("pip to be at work", isAtWork, { everyMs: 20, timeoutMs: 90_000 });
  await machine.forge.stack.server?.kill();
  await machine.forge.stack.startServer();
  const failed = await machine.untilFailed("agent");
  expect(failed.status_reason).toMatch(/the agent ended right after its start/);
  expect(failed.bootstrap.steps[4]).toMatchObject({ step: "requirements", tries: 2 });
}, 300_000);

test("the agent starts and sends no heartbeat: step ready", async () => {
  machine.sshd.fake("setsid", 'echo $$ >agent.pid; echo "lost for words"; exec sleep 60');
  await machine.bootstrapAgain();
  const failed = await machine.untilFailed("ready");
  expect(failed.status_reason).toMatch(
    `lost for words\nthe agent was started, but sent no heartbeat for ${READY_S} s`,
  );
  machine.stopAgent();
  machine.sshd.fake("setsid", undefined);
}, 120_000);

test("after all repairs, the worker becomes idle", async () => {
  await machine.bootstrapAgain();
  await machine.untilStatus("idle");
}, 120_000);
