import { checkPage, checkPages, inBrowser, VIEWPORTS } from "../support/browser";
import { browserStage } from "../support/browser-stage";
import {
  BYO_DATA,
  type Pipeline,
  readPipeline,
  startPipeline,
  untilPipeline,
  usualWork,
  WorkerPool,
} from "../support/pipelines";
import { oneFormOf } from "../support/slow";

const stage = browserStage({ path: "/pipelines" }, async ({ forge }) => {
  crew = await new WorkerPool(forge).start(2);
});
let crew: WorkerPool;

const GATED = {
  ...BYO_DATA,
  name: "nightly",
  gates: [{ step: "evaluate", condition: "scores.overall >= 0.7" }],
  approvals: ["deploy"],
  budget_usd: 50,
  tags: ["law"],
};

inBrowser("pipelines", () => {
  afterEach(() => {
    crew.work = usualWork;
  });

  afterAll(async () => {
    await crew?.stop();
  });

  test("a pipeline waits for its approval, is approved with the keyboard shortcut, and completes", async () => {
    const { page } = stage.at;
    await page.getByText("Pipelines that you submit appear here.").waitFor();
    const id = await startPipeline(stage.forge.user, GATED);
    await page.getByRole("button", { name: "1 new" }).click();
    await page.getByRole("link", { name: "nightly" }).click();
    await page.getByText("Step deploy waits for an approval.").waitFor({ timeout: 30_000 });
    await page.locator(".react-flow__node").getByText("deploy").waitFor();
    await page.getByText("Waits for your approval").waitFor();
    await page.keyboard.press("a");
    const dialog = page.getByRole("dialog", { name: "Approve deploy?" });
    // The dialog shows what the approver needs to decide: the gate's result and the score.
    await dialog.getByText("Gate passed").waitFor();
    await dialog.getByText("0.9", { exact: true }).waitFor();
    await dialog.getByLabel("Note").fill("looks good");
    await dialog.getByRole("button", { name: "Approve deploy" }).click();
    await page.getByText(/^Completed in .* for \$1\.85/).waitFor({ timeout: 30_000 });
    const { steps } = await readPipeline(stage.forge.user, id);
    expect(steps.at(-1)?.approval).toMatchObject({ approved: true, note: "looks good" });
    await page.getByText("“looks good”").waitFor();
    await page.getByRole("tab", { name: "Timeline" }).click();
    await page.getByRole("button", { name: /^Completed train/ }).click();
    expect(page.url()).toMatch(/view=gantt/);
    expect(page.url()).toMatch(/step=train/);
    await page.reload();
    await page.getByRole("heading", { name: "Step train" }).waitFor();
    await page.getByRole("tab", { name: "Steps" }).click();
    await page
      .getByRole("row", { name: /^In all/ })
      .getByText("$1.85")
      .waitFor();
    await page.getByRole("link", { name: "Open its job" }).click();
    await page.waitForURL(/\/ui\/jobs\/job_/);
    await page.getByRole("link", { name: id }).click();
    await page.waitForURL(`**/ui/pipelines/${id}?step=train`);
  });

  test("a failed gate shows its numbers, and the pipeline is resumed with another gate", async () => {
    const { page } = stage.at;
    crew.work = (job) =>
      job.job_type === "evaluate" ? { result: { scores: { overall: 0.5 } } } : usualWork(job);
    const id = await startPipeline(stage.forge.user, GATED);
    await untilPipeline(stage.forge.user, id);
    await stage.open(`/pipelines/${id}`);
    await page
      .getByText("The gate of evaluate did not hold: scores.overall is 0.5, it needs scores")
      .waitFor();
    await page.keyboard.press("r");
    const dialog = page.getByRole("dialog", { name: "Resume this pipeline?" });
    const gate = dialog.getByLabel("Gate of evaluate");
    await gate.fill("scores.overall >=");
    await dialog.getByRole("button", { name: "Resume" }).click();
    await dialog.getByRole("alert").waitFor();
    expect(await gate.getAttribute("aria-invalid")).toBe("true");
    await gate.fill("scores.overall >= 0.4");
    await dialog.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Step deploy waits for an approval.").waitFor({ timeout: 30_000 });
    await page.keyboard.press("a");
    await page.getByRole("button", { name: "Reject" }).click();
    await page.getByText(/rejected step deploy/).waitFor({ timeout: 30_000 });
  });

  test("the form submits a pipeline; an invalid value is reported at its field", async () => {
    const { page } = stage.at;
    await stage.open("/pipelines/new?template=synthetic");
    const step = (type: string) => page.locator(`[data-step="${type}"]`);
    await page.getByLabel("Name").fill("by form");
    const more = step("train").getByText("Worker, limits and parameters");
    const sweep = step("train").getByLabel("Sweep");
    await more.click();
    await sweep.fill("epochs = 3");
    await more.click();
    await sweep.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Submit 6 steps" }).click();
    await step("train").getByText("This is required.").waitFor();
    // The collapsed section has opened, because it contains a problem.
    await step("train").getByText("Line 1 is not a JSON object").waitFor();
    await sweep.fill("");
    await step("generate")
      .getByLabel("Given by")
      .selectOption({ label: "Domain, number of samples" });
    await step("generate").getByLabel("Domain").fill("law");
    await step("generate").getByLabel("Number of samples").fill("20");
    await step("audit").getByRole("checkbox", { name: "audit" }).uncheck();
    await step("distill").getByRole("checkbox", { name: "distill" }).uncheck();
    await step("train").getByText("Its dataset comes from generate.").waitFor();
    await step("train").getByLabel("Model").fill("m");
    await step("evaluate").getByLabel("Gate").fill("scores.overall >");
    await step("generate").getByLabel("Wait for an approval before it begins").check();
    await page.getByRole("button", { name: "Submit 4 steps" }).click();
    await step("evaluate").getByRole("alert").waitFor();
    await step("evaluate").getByLabel("Gate").fill("scores.overall > 0.1");
    const estimate = page.getByRole("table", { name: "Estimated cost of each step" });
    for (const name of ["generate", "train", "evaluate", "deploy"]) {
      await estimate.getByRole("row", { name: new RegExp(`^${name}`) }).waitFor();
    }
    expect(await checkPage(page, "pipeline-new-filled-light")).toEqual([]);
    await page.getByText('"skip": [').waitFor();
    await page.getByRole("tab", { name: "Python" }).click();
    await page.getByText("client.pipelines.run(").waitFor();
    await page.getByRole("button", { name: "Submit 4 steps" }).click();
    await page.getByText("Step generate waits for an approval.").waitFor({ timeout: 30_000 });
    const id = page.url().split("/").at(-1) ?? "";
    expect(await readPipeline(stage.forge.user, id)).toMatchObject({ name: "by form" });
    await page.keyboard.press("u");
    await page.getByLabel("Budget in USD").fill("12.5");
    await page.getByRole("button", { name: "Set the budget" }).click();
    await page.getByText("of $12.50").waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("c");
    await page.getByRole("button", { name: "Cancel the pipeline" }).click();
    await page.getByText("The pipeline was cancelled.").waitFor({ timeout: 30_000 });
  });

  test("filters are in the address", async () => {
    const { page } = stage.at;
    await stage.open("/pipelines");
    await page.getByRole("link", { name: "by form" }).waitFor();
    await page.getByLabel("Filter by name, tag or id").fill("night");
    await page.waitForURL(/q=night/);
    await page.getByRole("link", { name: "by form" }).waitFor({ state: "detached" });
    await stage.open("/pipelines?status=running");
    await page.getByText("No pipeline matches these filters.").waitFor();
  });

  test.each(oneFormOf(VIEWPORTS))("pages in $name", async (form) => {
    const { pipelines } = await stage.forge.user.get<{ pipelines: Pipeline[] }>("/api/pipelines");
    const completed = pipelines.find(({ status }) => status === "completed")?.pipeline_id;
    const seen = await checkPages(stage.browser, stage.forge.user, form, {
      pipelines: ["/pipelines", "by form"],
      "pipeline-new": ["/pipelines/new", "The same without this form"],
      pipeline: [`/pipelines/${completed}`, "React Flow"],
      "pipeline-timeline": [`/pipelines/${completed}?view=gantt`, "on the critical path"],
      "pipeline-steps": [`/pipelines/${completed}?view=steps&step=evaluate`, "In all"],
    });
    expect(seen).toEqual({ problems: [], pageErrors: [] });
  });
});
