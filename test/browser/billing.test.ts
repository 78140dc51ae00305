import type { Page } from "playwright-core";
import { billed, readSummary } from "../support/billing";
import { accessibilityProblems, inBrowser } from "../support/browser";
import { browserStage } from "../support/browser-stage";
import { AUDIT } from "../support/jobs";

const stage = browserStage({ path: "/billing" }, async ({ forge }) => {
  const worker = await forge.worker("gpu-1", { name: "NVIDIA A100", memory_gb: 80 });
  const party = { user: forge.user, worker };
  const generate = { domain: "law", num_samples: 1000, tags: ["nightly"] };
  await billed(forge, party, ["generate", generate], { tokens_generated: 4_000_000 });
  await billed(forge, party, ["audit", AUDIT], { rows_processed: 3_000 });
  const train = { dataset_id: "ds_x", model: "llama-3-8b", tags: ["nightly"] };
  const record = await billed(forge, party, ["train", train], { gpu_hours: 2 }, 2);
  trained = record.job_id;
});
let trained = "";

const usd = (amount: number, digits = 2): string =>
  amount.toLocaleString("en-US", {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });

/** The text of the last cell in a table's row. */
const lastCell = async (page: Page, section: string, name: string): Promise<string> =>
  await page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: section, exact: true }) })
    .getByRole("row")
    .filter({ hasText: name })
    .getByRole("cell")
    .last()
    .innerText();

const open = async (page: Page, query = ""): Promise<void> => {
  await page.goto(`${stage.forge.stack.apiUrl}/ui/billing${query}`);
  await page.getByRole("heading", { name: "Records" }).waitFor();
};

inBrowser("billing", () => {
  test("totals, types, tags, days and the invoice are the API's", async () => {
    const { page } = stage.at;
    await open(page);
    const summary = await readSummary(stage.forge.user);
    const total = usd(summary.estimated_invoice.total_usd);
    expect(summary.total_cost_usd).toBeGreaterThan(4);
    await page.getByText(`${usd(summary.total_cost_usd)} in 3 records`).waitFor();
    for (const [type, cost] of Object.entries(summary.by_job_type)) {
      expect(await lastCell(page, "Where it went", type)).toBe(usd(cost));
      expect(await lastCell(page, "Invoice so far", `${type}:`)).toBe(usd(cost));
    }
    expect(await lastCell(page, "Invoice so far", "Total")).toBe(total);
    await page.getByRole("tab", { name: "By tag" }).click();
    await page.waitForURL(/by=tag/);
    expect(await lastCell(page, "Where it went", "nightly")).toBe(usd(summary.by_tag.nightly ?? 0));
    await page.getByRole("button", { name: "As a table" }).click();
    const { days } = await stage.forge.user.get<{
      days: { day: string; total_cost_usd: number }[];
    }>("/api/billing/daily");
    const [day] = days.filter((each) => each.total_cost_usd > 0);
    expect(await lastCell(page, "Cost per day", String(Number(day?.day.slice(-2))))).toBe(
      usd(day?.total_cost_usd ?? 0),
    );
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("the chart shows a day's costs with the keyboard", async () => {
    const { page } = stage.at;
    await open(page);
    await page.getByRole("group", { name: /^Cost per day of/ }).focus();
    await page.keyboard.press("Home");
    const today = new Date().getUTCDate();
    for (let day = 1; day < today; day++) await page.keyboard.press("ArrowRight");
    const status = page.getByRole("group", { name: /^Cost per day of/ }).getByRole("status");
    await status.getByText("train").waitFor();
    await status.getByText(usd(2.5)).waitFor();
  });

  test("a record opens with its formula; the list is filtered and sorted", async () => {
    const { page } = stage.at;
    await open(page, "?sort=cost");
    const records = page.getByRole("table", { name: "Billing records" });
    await records.getByRole("row").nth(1).getByText("train").waitFor();
    await page.getByRole("button", { name: "Type: all" }).click();
    await page.getByRole("menuitemcheckbox", { name: "train" }).click();
    await page.keyboard.press("Escape");
    await records.getByText("generate").waitFor({ state: "detached" });
    await records.getByRole("button").first().press("Enter");
    const dialog = page.getByRole("dialog", { name: "Bill of this train job" });
    await dialog.getByText("2 GPU hours x 1.25 = 2.5 USD").waitFor();
    await dialog.getByText(usd(2.5, 6)).first().waitFor();
    expect(page.url()).toContain(`record=${trained}`);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("a cap is set, shown with its state, and enforced", async () => {
    const { page } = stage.at;
    await open(page);
    await page.getByRole("button", { name: "Set a cap" }).click();
    await page.getByLabel("Cap (USD a month)").fill("a lot");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("An amount in USD, such as 500 or 12.50.").waitFor();
    await page.getByLabel("Cap (USD a month)").fill("1");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Used up: submissions are refused").waitFor();
    expect((await readSummary(stage.forge.user)).budget).toMatchObject({ cap_usd: 1 });
    // The choice "never" is kept when the form is opened again.
    const warns = page.getByLabel("Warn before the cap is reached");
    await page.getByRole("button", { name: "Change" }).click();
    await warns.uncheck();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("never", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Change" }).click();
    expect(await warns.isChecked()).toBe(false);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const { budget } = await readSummary(stage.forge.user);
    expect(budget).toMatchObject({ cap_usd: 1, warning_usd: null });
    await page.goto(`${stage.forge.stack.apiUrl}/ui/submit?type=audit`);
    await page.getByRole("combobox", { name: "Dataset URI" }).fill(AUDIT.dataset_uri);
    await page.getByRole("button", { name: "Submit the audit job" }).click();
    await page.getByText("The month's budget does not allow this job.").waitFor();
    await page.getByRole("link", { name: "See the budget" }).click();
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByRole("button", { name: "Remove the cap" }).click();
    await page.getByRole("button", { name: "Set a cap" }).waitFor();
  });

  test("a month is chosen, kept in the address, and downloaded as CSV", async () => {
    const { page } = stage.at;
    await open(page);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: /as CSV$/ }).click(),
    ]);
    const period = new Date().toISOString().slice(0, 7);
    expect(download.suggestedFilename()).toBe(`forge-billing-${period}.csv`);
    await page.getByRole("button", { name: "Month before" }).click();
    await page.waitForURL(/period=\d{4}-\d{2}/);
    await page.getByText("Nothing was billed in this month.").first().waitFor();
    await page.reload();
    await page.getByText("Nothing was billed in this month.").first().waitFor();
    await page.getByRole("button", { name: "Next month" }).click();
    await page.waitForURL((url) => !url.search.includes("period"));
  });
});
