/**
 * Follows one job from its submission to its bill, with the real agent, and cancels another one.
 */

import type { Page } from "playwright-core";
import { inBrowser, openSignedIn } from "../support/browser";
import { browserStage } from "../support/browser-stage";

const stage = browserStage({ env: { HEARTBEAT_INTERVAL: "0.5" } });

inBrowser("a job", () => {
  afterEach(async () => {
    await stage.forge.proveInvariants();
  });

  const tab = async (page: Page, name: string): Promise<void> =>
    await page.getByRole("tab", { name }).click();

  test("is watched from pending to completed without a reload", async () => {
    const { page } = stage.at;
    await openSignedIn(page, stage.forge.user, "/ui/jobs");
    await page.getByText("Jobs that you submit appear here.").waitFor();
    const { job_id } = await stage.forge.user.submit("generate", {
      domain: "law",
      num_samples: 40,
      tags: ["nightly"],
    });
    await page.getByRole("button", { name: "1 new" }).click();
    await page.getByRole("link", { name: job_id }).click();
    await page.getByText("Start an agent, or add a machine over SSH.").waitFor();
    await page.getByRole("link", { name: "See the workers" }).waitFor();
    await stage.forge.stack.startAgent("box");
    await page.getByText(/^Worker box completed the job in/).waitFor({ timeout: 45_000 });
    await tab(page, "Log");
    await page.getByRole("log").getByText("40 rows by").waitFor();
    await page.getByLabel("Search the log").fill("rows");
    await page.getByText("1 line", { exact: true }).waitFor();
    expect(page.url()).toContain("tab=log&q=rows");
    await tab(page, "Bill");
    await page.getByText("tokens / 1000000").waitFor();
    await tab(page, "Artifacts");
    await page.getByRole("table", { name: "Artifacts of the job" }).getByRole("link").click();
    await page.getByText("Forge has seen its files and measured them itself.").waitFor();
    await tab(page, "Preview");
    await page.getByText("40 rows").waitFor();
    await tab(page, "Lineage");
    await page.locator(".react-flow__node").getByText(job_id).waitFor();
    await tab(page, "Files");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download raw.parquet" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("raw.parquet");
    await tab(page, "Manifest");
    await page.getByLabel("the manifest", { exact: true }).getByText('"verified": true').waitFor();
  });

  test("is cancelled with the keyboard shortcut, and retried", async () => {
    const { page } = stage.at;
    const needs = { gpu: 8, gpu_type: "H100" };
    const { job_id } = await stage.forge.user.submit("generate", {
      domain: "law",
      num_samples: 5,
      resources: needs,
    });
    await page.goto(`${stage.forge.stack.apiUrl}/ui/jobs/${job_id}`);
    await page.getByText(/^Needs 8 GPUs?|^Needs a GPU/).waitFor();
    await page.keyboard.press("c");
    const error = { code: "job_finalising", message: "the result is accepted", request_id: "r" };
    await page.route("**/cancel", (route) => route.fulfill({ status: 409, json: { error } }), {
      times: 1,
    });
    await page.getByRole("button", { name: "Cancel the job" }).click();
    const refusal = page.getByRole("dialog").getByRole("alert");
    await refusal.getByText("The job was not cancelled. The result is accepted.").waitFor();
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await page.getByText("The job was cancelled by stack user.").waitFor();
    expect((await stage.forge.user.job(job_id)).error_code).toBe("cancelled");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    // Holding the key down must retry the job only once.
    for (let times = 0; times < 3; times++) await page.keyboard.down("r");
    await page.keyboard.up("r");
    await page.waitForURL((url) => !url.pathname.endsWith(job_id));
    const { jobs } = await stage.forge.user.get<{ jobs: { retried_from: string | null }[] }>(
      "/api/jobs?status=pending",
    );
    expect(jobs.map(({ retried_from }) => retried_from)).toEqual([job_id]);
    const retried = page.url().split("/").at(-1) ?? "";
    await stage.forge.user.post(`/api/jobs/${retried}/cancel`, {});
  });

  test("of another tenant, or unknown, is not shown", async () => {
    await stage.at.page.goto(`${stage.forge.stack.apiUrl}/ui/jobs/job_nothing`);
    await stage.at.page.getByText("There is no job with this id").waitFor();
  });
});
