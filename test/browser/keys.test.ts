/** The dashboard by keyboard: shortcuts, Tab, Enter and Escape. Some tests also use the mouse. */

import type { Locator } from "playwright-core";
import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import { inBrowser, openSignedIn, visit } from "../support/browser";
import { browserStage } from "../support/browser-stage";
import { answerByKeys, focused, tabTo } from "../support/keyboard";
import { BYO_DATA, startPipeline } from "../support/pipelines";
import { seedJobs } from "../support/seeded-jobs";

const stage = browserStage({ path: "/" });

const button = (name: string | RegExp): Locator => stage.at.page.getByRole("button", { name });

async function press(target: Locator): Promise<void> {
  await tabTo(stage.at.page, target);
  await stage.at.page.keyboard.press("Enter");
}

inBrowser("keys", () => {
  let jobIds: string[] = [];

  beforeAll(async () => {
    for (let n = 0; n < 3; n++) {
      const { job_id } = await stage.forge.user.submit("generate", {
        domain: "law",
        num_samples: 5,
      });
      jobIds = [job_id, ...jobIds];
    }
    await stage.at.page.getByRole("heading", { name: "Overview" }).waitFor();
  });

  test("g and a letter go to a page; j, k and Enter to a row; / to the filter", async () => {
    const { page } = stage.at;
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await page.getByRole("link", { name: jobIds[2] ?? "" }).waitFor();
    for (const key of ["j", "j", "j", "k"]) await page.keyboard.press(key);
    await page
      .getByRole("link", { name: jobIds[1] ?? "" })
      .and(page.locator(":focus"))
      .waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/ui/jobs/${jobIds[1]}`);
    await page.goBack();
    await page.getByRole("link", { name: jobIds[2] ?? "" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type(jobIds[0] ?? "");
    await page.getByRole("link", { name: jobIds[1] ?? "" }).waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("link", { name: jobIds[1] ?? "" }).waitFor();
  });

  test("Ctrl+K finds a page by its name, and a job by its id", async () => {
    const { page } = stage.at;
    const input = page.getByRole("combobox", { name: "Page or id" });
    await page.keyboard.press("Control+k");
    await focused(page, input);
    await page.keyboard.type("work");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    await page.keyboard.press("Control+k");
    await focused(page, input);
    await page.keyboard.type(jobIds[0] ?? "");
    expect(await input.inputValue()).toBe(jobIds[0]);
    await page.getByRole("option", { name: "generate job" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/ui/jobs/${jobIds[0]}`);
  });

  test("? shows the keys of the page, Esc closes them", async () => {
    const { page } = stage.at;
    await page.getByRole("button", { name: "Cancel" }).waitFor();
    // Shortcuts are off while a dialog is open. So wait until the command palette of the previous
    // test, which is a dialog, has faded out.
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Cancel the job").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("the theme is chosen in the menu, and stays", async () => {
    const { page } = stage.at;
    await page.getByRole("button", { name: "Tenant local" }).press("Enter");
    await page.getByRole("menuitemradio", { name: "Dark" }).press("Enter");
    await page.reload();
    await page.locator('html[data-theme="dark"]').waitFor();
  });
});

inBrowser("lists", () => {
  test("a span of the chart of ended jobs leads to them, by keys and by dragging", async () => {
    const page = await stage.open("/");
    const chart = page.getByRole("group", { name: /^Jobs that ended/ });
    await chart.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Shift+ArrowLeft");
    await page
      .getByRole("status")
      .getByText(/to \d\d:\d\d: completed \d+, failed \d+$/)
      .waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/ui\/jobs\?ended_after=.+&ended_before=/);
    await button(/^Remove ended from/).click();
    await page.waitForURL("**/ui/jobs");
    await stage.open("/");
    // The figure links to the jobs that it counts.
    const failed = page.getByRole("link", { name: "Failed in 24 h" });
    expect(await failed.getAttribute("href")).toMatch(/\?status=failed&ended_after=/);
    const { x, y, width } = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0 };
    await page.mouse.move(x + width * 0.25, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.75, y + 60);
    await page.mouse.up();
    await page.waitForURL(/ended_after/);
    const { searchParams: query } = new URL(page.url());
    const hours = ["ended_before", "ended_after"].map(
      (name) => Date.parse(query.get(name) ?? "") / 3_600_000,
    );
    expect((hours[0] ?? 0) - (hours[1] ?? 0)).toBeGreaterThan(10);
  });

  test("more new rows than fit on a page: the list is reloaded, and no row is missing", async () => {
    const { forge } = stage;
    // Wait for the first response, because this test is about rows that arrive later.
    const first = stage.at.page.waitForResponse(/\/api\/jobs\?/);
    const page = await stage.open("/jobs?q=job_");
    await (await first).finished();
    const table = page.getByRole("table", { name: "Jobs" });
    const rows = async (): Promise<number> =>
      Number(await table.getAttribute("aria-rowcount", { timeout: 5_000 })) - 1;
    await table.waitFor();
    const before = await rows();
    const { user_id } = await forge.user.get<{ user_id: string }>("/api/auth/ping");
    const created_at = new Date().toISOString();
    const jobs = Array.from({ length: 70 }, (_, n) => ({
      job_id: `job_new_${String(n).padStart(2, "0")}`,
      ...{ user_id, created_at, completed_at: created_at },
      ...{ status: "failed", error_code: "job_error" },
    }));
    await seedJobs(forge.ctx.pool, jobs);
    await button("50 new").click();
    await page.getByRole("link", { name: "job_new_69" }).waitFor();
    expect(await rows()).toBe(50);
    await button("Load older jobs").click();
    await waitFor("all rows", async () => (await rows()) === 70 + before);
  });
});

inBrowser("actions", () => {
  test("of a job: cancel, retry, clone", async () => {
    const { forge } = stage;
    const { job_id } = await forge.user.submit("generate", { domain: "law", num_samples: 5 });
    const page = await stage.open(`/jobs/${job_id}`);
    // If the shortcut opens the dialog while nothing has the focus, closing the dialog moves the
    // focus to the button with that shortcut.
    await button("Cancel").waitFor();
    await page.evaluate("document.activeElement.blur()");
    await page.keyboard.press("c");
    await focused(page, button("Keep it"));
    await page.keyboard.press("Escape");
    await focused(page, button("Cancel"));
    // If an element had the focus before the dialog opened, closing the dialog returns the focus to
    // this element.
    await tabTo(page, button("Retry"));
    await page.keyboard.press("c");
    await focused(page, button("Keep it"));
    await page.keyboard.press("Escape");
    await focused(page, button("Retry"));
    await answerByKeys(page, button("Cancel"), "Cancel the job");
    await page.getByText("The job was cancelled by stack user.").waitFor();
    await press(button("Retry"));
    await page.waitForURL((url) => !url.pathname.endsWith(job_id));
    const retried = page.url().split("/").at(-1) ?? "";
    await press(button("Clone"));
    await page.waitForURL(`**/ui/submit?from=${retried}`);
    await press(button("Submit the generate job"));
    await page.waitForURL(/\/ui\/jobs\/job_/);
    for (const id of [retried, page.url().split("/").at(-1)]) {
      await forge.user.post(`/api/jobs/${id}/cancel`, {});
    }
  });

  test("of a pipeline: approve, set its budget, cancel, resume", async () => {
    const id = await startPipeline(stage.forge.user, {
      ...BYO_DATA,
      approvals: ["audit", "distill"],
    });
    const page = await stage.open(`/pipelines/${id}`);
    await page.getByText("Step audit waits for an approval.").waitFor({ timeout: 30_000 });
    await press(button("Budget"));
    await focused(page, page.getByLabel("Budget in USD"));
    await page.keyboard.type("20");
    await page.keyboard.press("Enter");
    await page.getByText("of $20.00").waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await press(button("Approve").first());
    await focused(page, page.getByLabel("Note"));
    await press(button("Approve audit"));
    await page.getByText("audit is approved and begins.").waitFor();
    await answerByKeys(page, button("Cancel"), "Cancel the pipeline");
    await page.getByText("The pipeline was cancelled.").waitFor({ timeout: 30_000 });
    await press(button("Resume").first());
    await press(page.getByRole("dialog").getByRole("button", { name: "Resume" }));
    await page.getByText("Step audit waits for an approval.").waitFor({ timeout: 30_000 });
    await press(button("Approve").first());
    await press(button("Reject"));
    await page.getByText(/rejected step audit/).waitFor({ timeout: 30_000 });
  });

  test("of a key: create and revoke", async () => {
    const page = await stage.open("/keys");
    await press(button("Create a key"));
    await focused(page, page.getByRole("dialog").getByLabel("Name"));
    await page.keyboard.type("by keys");
    await page.keyboard.press("Enter");
    await page.getByText("Forge does not show this key again.").waitFor();
    await press(button("I have kept it"));
    await answerByKeys(page, button(/^Revoke by keys/), "Revoke the key");
    await page.getByText("The key by keys is revoked.").waitFor();
  });

  test("of a dataset: delete its files", async () => {
    const { stack } = stage.forge;
    const answer = await fetch(`${stack.apiUrl}/api/datasets?name=rows`, {
      method: "POST",
      headers: { "x-service-api-key": stack.keys.userKey, "content-type": "application/x-ndjson" },
      body: '{"a": 1}\n',
    });
    const { dataset_id } = (await answer.json()) as { dataset_id: string };
    const page = await stage.open(`/artifacts/${dataset_id}`);
    await answerByKeys(page, button("Delete files"), "Delete the files");
    await page.getByText("Its files are deleted.").waitFor();
  });

  test("of a worker: drain, undrain, decommission", async () => {
    await stage.forge.worker("by-keys");
    const page = await stage.open("/workers/by-keys");
    await press(button("Drain"));
    await focused(page, button("Undrain"));
    await page.getByText("It is draining.").waitFor();
    await page.keyboard.press("Enter");
    await focused(page, button(/^Drain$/));
    await page.getByText("It is idle and asks for work.").waitFor();
    await answerByKeys(page, button("Decommission"), "Decommission");
    await page.getByText("by-keys is out of the fleet.").waitFor();
    await page.waitForURL("**/ui/workers");
  });

  test("of a worker in error: an admin resets it, and every state is undone by a click", async () => {
    const { forge, browser } = stage;
    await forge.worker("by-clicks");
    await execute(
      forge.ctx.pool,
      "update workers set status = 'error', error_code = 'failing' where worker_id = 'by-clicks'",
    );
    const page = await stage.open("/workers/by-clicks");
    await page.getByText("have an admin reset it", { exact: false }).waitFor();
    expect(await button("Reset").count()).toBe(0);
    const admin = await visit(browser);
    await openSignedIn(admin.page, forge.admin, "/ui/workers/by-clicks");
    const click = (name: string): Promise<void> =>
      admin.page.getByRole("button", { name, exact: true }).click();
    await click("Reset");
    await admin.page.getByText("It is idle and asks for work.").waitFor();
    await click("Drain");
    await admin.page.getByText("It is draining.").waitFor();
    await click("Undrain");
    await admin.page.getByText("It is idle and asks for work.").waitFor();
    await click("Decommission");
    await admin.page.getByRole("dialog").getByRole("button", { name: "Decommission" }).click();
    await admin.page.waitForURL("**/ui/workers");
    expect(admin.pageErrors).toEqual([]);
    await admin.context.close();
    await page.getByText("There is no worker with this id").waitFor();
  });
});
