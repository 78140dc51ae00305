import type { Page, Route } from "playwright-core";
import { accessibilityProblems, inBrowser } from "../support/browser";
import { browserStage } from "../support/browser-stage";
import { untilEnded } from "../support/jobs";

const stage = browserStage({ env: { HEARTBEAT_INTERVAL: "0.5" }, path: "/submit?type=generate" });

interface Listed {
  job_id: string;
  payload: Record<string, unknown>;
  tags: string[];
  params: Record<string, unknown>;
  priority: number;
}

const jobs = async (query = ""): Promise<Listed[]> =>
  (await stage.forge.user.get<{ jobs: Listed[] }>(`/api/jobs${query}`)).jobs;

const openForm = async (page: Page, query: string): Promise<void> => {
  await page.goto(`${stage.forge.stack.apiUrl}/ui/submit?${query}`);
  await page.getByRole("button", { name: /^Submit the/ }).waitFor();
};

const submit = async (page: Page): Promise<string> => {
  await page.getByRole("button", { name: /^Submit the/ }).click();
  await page.waitForURL(/\/ui\/jobs\/job_/);
  return new URL(page.url()).pathname.split("/").at(-1) ?? "";
};

inBrowser("the form that submits jobs", () => {
  afterEach(async () => {
    await stage.forge.proveInvariants();
  });

  test("a job is submitted, and its completion is shown without a reload", async () => {
    const { page } = stage.at;
    await page.getByLabel("Described by").selectOption({ label: "Domain, number of samples" });
    await page.getByLabel("Domain").fill("law");
    await page.getByLabel("Number of samples").fill("20");
    await page.getByLabel("Tags", { exact: false }).last().fill("nightly, first");
    await page.getByLabel("Parameters for the worker").fill('{"temperature": 0.5}');
    await page.getByText("A rule of thumb").waitFor();
    const expected = await stage.forge.user.post<{ formula: string }>("/api/billing/estimate", {
      job_type: "generate",
      payload: { domain: "law", num_samples: 20 },
    });
    await page.getByText(expected.formula).waitFor();
    const jobId = await submit(page);
    const [job] = await jobs();
    expect(job).toMatchObject({
      job_id: jobId,
      payload: { domain: "law", size: 20 },
      tags: ["nightly", "first"],
      params: { temperature: 0.5 },
    });
    await stage.forge.stack.startAgent("box");
    await page.getByText(/^Worker box completed the job in/).waitFor({ timeout: 45_000 });
  });

  test("an invalid value is reported at its field, and nothing is sent", async () => {
    const { page } = stage.at;
    await openForm(page, "type=train");
    const before = (await jobs()).length;
    await page.getByLabel("Priority").fill("101");
    await page.getByLabel("Parameters for the worker").fill("{lr: 1}");
    await page.getByRole("button", { name: /^Submit the/ }).click();
    const dataset = page.getByRole("combobox", { name: "Dataset ID" });
    await dataset.and(page.locator(":focus")).waitFor();
    await expectError(page, "Dataset ID", "This is required.");
    await expectError(page, "Priority", "At most 100.");
    await expectError(page, "Parameters for the worker", /^This is not JSON/);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect((await jobs()).length).toBe(before);
  });

  test("a server error is reported at its field", async () => {
    const { page } = stage.at;
    await openForm(page, "type=deploy");
    await page.getByRole("combobox", { name: "Checkpoint ID" }).fill("llama-3-8b");
    await page.getByLabel("Min replicas").fill("3");
    await page.getByLabel("Max replicas").fill("2");
    await page.getByRole("button", { name: /^Submit the/ }).click();
    await expectError(page, "Min replicas", /is more than "max_replicas"/);
    await page.getByLabel("Min replicas").fill("1");
    await page.getByText(/is more than "max_replicas"/).waitFor({ state: "detached" });
  });

  test("a double click or a lost response creates only one job", async () => {
    const { page } = stage.at;
    await openForm(page, "type=generate");
    await fillGenerate(page, "medicine");
    let lost = 0;
    const markFirstLost = async (route: Route): Promise<void> => {
      if (route.request().method() !== "POST" || lost > 0) return await route.continue();
      lost += 1;
      await route.fetch();
      await route.abort("connectionreset");
    };
    await page.route("**/api/jobs/generate", markFirstLost);
    await page.getByRole("button", { name: /^Submit the/ }).dblclick();
    await page.waitForURL(/\/ui\/jobs\/job_/);
    await page.unroute("**/api/jobs/generate");
    expect(lost).toBe(1);
    const made = (await jobs()).filter(({ payload }) => payload.domain === "medicine");
    expect(made).toHaveLength(1);
    await untilEnded(stage.forge.user, made[0]?.job_id ?? "");
  });

  test("a clone starts with the job's content", async () => {
    const { page } = stage.at;
    const { job_id } = await stage.forge.user.submit("train", {
      dataset_uri: "s3://team-data/sft.parquet",
      model_id: "llama-3-8b",
      epochs: 7,
      priority: -5,
      tags: ["a", "b"],
      params: { lr: 0.001 },
      resources: { gpu: 2, gpu_type: "A100" },
    });
    await page.goto(`${stage.forge.stack.apiUrl}/ui/jobs/${job_id}`);
    await page.getByRole("button", { name: "Cancel" }).waitFor();
    await page.keyboard.press("e");
    await page.waitForURL(`**/ui/submit?from=${job_id}`);
    await page.getByLabel("Epochs").fill("8");
    const cloned = await submit(page);
    const [first, second] = await jobs("?job_type=train");
    expect(first?.job_id).toBe(cloned);
    expect(first).toMatchObject({
      ...{ priority: second?.priority, tags: second?.tags, params: second?.params },
      payload: { ...second?.payload, epochs: 8 },
    });
    for (const id of [job_id, cloned]) await stage.forge.user.post(`/api/jobs/${id}/cancel`, {});
  });

  test("the curl snippet creates the same job", async () => {
    const { page } = stage.at;
    await openForm(page, "type=generate");
    await fillGenerate(page, "it's law");
    // Wait until the content above has its final height, so that the click hits the tab.
    await page.getByText(/^Rate card/).waitFor();
    const code = await page.getByRole("tabpanel", { name: "curl" }).locator("pre").innerText();
    expect(code).toContain(`curl -sS ${stage.forge.stack.apiUrl}/api/jobs/generate`);
    expect(code).toContain(`"domain": "it'\\''s law"`);
    await page.getByRole("tab", { name: "Python" }).click();
    await page.getByText('    domain="it\'s law",').waitFor();
    await page.getByRole("tab", { name: "forge" }).click();
    await page.getByText("--domain 'it'\\''s law'").waitFor();
  });

  test("a dataset is uploaded from the form; a corrupted one is not stored", async () => {
    const { page } = stage.at;
    await openForm(page, "type=distill");
    const rows = '{"question": "a", "answer": "b"}\n{"question": "c", "answer": "d"}\n';
    const file = { name: "tasks.jsonl", mimeType: "", buffer: Buffer.from(rows) };
    await page.getByRole("button", { name: "Upload" }).click();
    const dialog = page.getByRole("dialog", { name: "Upload a dataset" });
    // The form's shortcut does not apply inside the dialog.
    await page.keyboard.press("Control+Enter");
    await dialog.locator("input[type=file]").setInputFiles(file);
    expect(await page.getByText("This is required.").count()).toBe(0);
    await page.route("**/api/datasets*", async (route) => {
      const headers = { ...route.request().headers(), "x-checksum-sha256": "0".repeat(64) };
      await route.continue({ headers });
    });
    await dialog.getByRole("button", { name: "Upload" }).click();
    await dialog.getByText("The bytes that arrived are not the bytes of your file.").waitFor();
    await page.unroute("**/api/datasets*");
    await dialog.getByRole("button", { name: "Try again" }).click();
    await dialog.waitFor({ state: "detached" });
    const { artifacts } = await stage.forge.user.get<{
      artifacts: { artifact_id: string; name: string }[];
    }>("/api/artifacts?type=dataset&name=tasks");
    expect(artifacts).toHaveLength(1);
    const field = page.getByRole("combobox", { name: "Dataset ID" });
    expect(await field.inputValue()).toBe(artifacts[0]?.artifact_id);
    await field.fill("tas");
    await page.getByRole("option", { name: "tasks" }).click();
    expect(await field.inputValue()).toBe(artifacts[0]?.artifact_id);
  });

  async function fillGenerate(page: Page, domain: string): Promise<void> {
    await page.getByLabel("Task").fill("question answering");
    await page.getByLabel("Size").fill("5");
    await page.getByLabel("Teacher").fill("llama-3-70b");
    await page.getByLabel("Domain").fill(domain);
  }
});

/** Expects an error that is linked to its input, so that a screen reader announces it. */
async function expectError(page: Page, label: string, text: string | RegExp): Promise<void> {
  const input = page.getByLabel(label).and(page.locator("[aria-invalid]"));
  await input.waitFor();
  const ids = (await input.getAttribute("aria-describedby"))?.split(" ") ?? [];
  const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).innerText()));
  expect(texts).toContainEqual(typeof text === "string" ? text : expect.stringMatching(text));
}
