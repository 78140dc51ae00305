/**
 * Adds a machine over SSH: plan, setup, first job. pip has nothing to install here:
 * test/e2e/bootstrap.test.ts covers real installations.
 */

import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { checkPage, inBrowser } from "../support/browser";
import { browserStage } from "../support/browser-stage";
import { untilEnded } from "../support/jobs";
import { Machine } from "../support/machine";

const machine = new Machine();

const stage = browserStage({
  path: "/workers",
  async start() {
    await machine.start();
    return { ...machine.forge, stop: () => machine.stop() };
  },
});

inBrowser("adding a machine", () => {
  test("an invalid value is reported at its field, before the plan", async () => {
    const { page } = stage.at;
    await page.getByRole("link", { name: "Add by SSH" }).click();
    await page.getByLabel("Host", { exact: true }).fill("169.254.169.254");
    await page.getByLabel("GPUs", { exact: true }).fill("0");
    await page.getByLabel("GPU type").fill("cpu");
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByText(/does not allow connections/).waitFor();
    await page.getByLabel("GPU type").fill("cpu\u202e");
    await page.getByRole("button", { name: "Show the plan" }).click();
    // The message is shown below the field's label, so it does not name the field.
    const refused = "Must not have characters that turn the direction of text.";
    await page.getByText(refused, { exact: true }).waitFor();
    await page.getByLabel("GPU type").fill("cpu");
    expect(await page.getByRole("button", { name: "Set it up" }).count()).toBe(0);
  });

  test("the plan is shown, the steps run one by one, and the worker becomes idle", async () => {
    const { page } = stage.at;
    machine.authorizeKey();
    machine.fakePackages();
    machine.installFakePython(await pythonEnvironment(saySilently));
    await page.getByLabel("Host", { exact: true }).fill("127.0.0.1");
    await page.getByLabel("User").fill(machine.sshd.user);
    await page.getByLabel("Port").fill(String(machine.sshd.port));
    await page.getByLabel("Worker id").fill(machine.id);
    await page.getByLabel("Tags").fill("ssh, eu");
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByText("installs the Python requirements").waitFor();
    await page.getByText("Writes bootstrap.sh").waitFor();
    expect(await checkPage(page, "add-worker-plan-light")).toEqual([]);
    const { status } = await stage.forge.user.call("GET", `/api/workers/${machine.id}`);
    expect(status).toBe(404);
    await page.getByRole("button", { name: "Set it up" }).click();
    await page.waitForURL(`**/ui/workers/${machine.id}`);
    await page.getByText("The machine is being set up.").waitFor();
    const { job_id } = await stage.forge.user.submit("generate", {
      ...{ domain: "law", num_samples: 5, resources: { tags: ["ssh", "eu"] } },
    });
    await page
      .getByText("It is idle and asks for work.")
      .or(page.getByText("It runs a job."))
      .waitFor({
        timeout: 50_000,
      });
    const steps = page.getByRole("list", { name: "Steps" }).getByRole("listitem");
    expect(await steps.count()).toBe(7);
    expect(await steps.getByLabel("completed").count()).toBe(7);
    // Each step has a log of its actions on the machine.
    await steps.nth(3).getByRole("button", { name: "Log" }).click();
    await page.getByText("sent by the server").waitFor();
    expect(await checkPage(page, "worker-set-up-light")).toEqual([]);
    expect((await untilEnded(stage.forge.user, job_id)).status).toBe("completed");
    await page.getByRole("link", { name: job_id }).first().waitFor();
  }, 90_000);

  test("a machine that refuses the key shows the failed step, and can be set up again", async () => {
    const { page } = stage.at;
    const id = "refused";
    const { status } = await machine.register({ worker_id: id, ssh_port: 1 });
    expect(status).toBe(201);
    await stage.open(`/workers/${id}`);
    await page.getByText("Setting it up failed.").waitFor({ timeout: 50_000 });
    const steps = page.getByRole("list", { name: "Steps" }).getByRole("listitem");
    await steps.first().getByLabel("failed").waitFor();
    await page.getByRole("button", { name: "Set up again" }).click();
    await page.getByText(`${id} is being set up again.`).waitFor();
  }, 90_000);
});
