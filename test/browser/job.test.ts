import type { Browser, Page } from "playwright-core";
import { inBrowser, openBrowser, openSignedIn, type Visit, visit } from "../support/browser";
import { type Forge, startForge } from "../support/forge";

/** One job from its submission to its bill, with the real agent; and one that is cancelled. */
let forge: Forge;
let browser: Browser;
let at: Visit;

inBrowser("a job", () => {
  beforeAll(async () => {
    [forge, browser] = await Promise.all([
      startForge({ HEARTBEAT_INTERVAL: "0.5" }),
      openBrowser(),
    ]);
    at = await visit(browser);
  });

  afterAll(async () => {
    await browser?.close();
    await forge?.stop();
  });

  afterEach(async () => {
    expect(at.complaints).toEqual([]);
    await forge.proveInvariants();
  });

  const tab = async (page: Page, name: string): Promise<void> =>
    await page.getByRole("tab", { name }).click();

  test("is watched from pending to completed without a reload", async () => {
    const { page } = at;
    await openSignedIn(page, forge.user, "/ui/jobs");
    await page.getByText("Jobs that you submit appear here.").waitFor();
    const { job_id } = await forge.user.submit("generate", {
      domain: "law",
      num_samples: 40,
      tags: ["nightly"],
    });
    await page.getByRole("button", { name: "1 new" }).click();
    await page.getByRole("link", { name: job_id }).click();
    await page.getByText("Start an agent, or add a machine over SSH.").waitFor();
    await forge.stack.startAgent("box");
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

  test("is cancelled by its key, and retried", async () => {
    const { page } = at;
    const needs = { gpu: 8, gpu_type: "H100" };
    const { job_id } = await forge.user.submit("generate", {
      domain: "law",
      num_samples: 5,
      resources: needs,
    });
    await page.goto(`${forge.stack.apiUrl}/ui/jobs/${job_id}`);
    await page.getByText(/^Needs 8 GPUs?|^Needs a GPU/).waitFor();
    await page.keyboard.press("c");
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await page.getByText("The job was cancelled by stack user.").waitFor();
    expect((await forge.user.job(job_id)).error_code).toBe("cancelled");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("r");
    await page.waitForURL((url) => !url.pathname.endsWith(job_id));
    const retried = page.url().split("/").at(-1) ?? "";
    await forge.user.post(`/api/jobs/${retried}/cancel`, {});
  });

  test("of another tenant, or none, is not shown", async () => {
    await at.page.goto(`${forge.stack.apiUrl}/ui/jobs/job_nothing`);
    await at.page.getByText("There is no job with this id").waitFor();
  });
});
