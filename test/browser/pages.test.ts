import type { Browser, Page } from "playwright-core";
import { runJob } from "../support/agent-jobs";
import { FORMS, goTo, inBrowser, lookAt, openBrowser, signIn, visit } from "../support/browser";
import { type Forge, startForge } from "../support/forge";

/** Each page in both themes, wide and on a phone: no serious problem for axe, and nothing refused by the policy. */
let forge: Forge;
let browser: Browser;
const ids = { job: "", failed: "", waiting: "", artifact: "" };

/** A page's path, and a text that is there when it has loaded. */
const PAGES: Record<string, () => [path: string, text: string | RegExp]> = {
  overview: () => ["/ui/", "Why jobs wait"],
  jobs: () => ["/ui/jobs", ids.job],
  "jobs-nothing-matches": () => ["/ui/jobs?tag=none", "No job matches these filters."],
  job: () => [`/ui/jobs/${ids.job}`, "completed the job in"],
  "job-log": () => [`/ui/jobs/${ids.job}?tab=log&q=rows`, "1 line"],
  "job-bill": () => [`/ui/jobs/${ids.job}?tab=bill`, "Rate card"],
  "job-failed": () => [`/ui/jobs/${ids.failed}`, "The worker said"],
  "job-waiting": () => [`/ui/jobs/${ids.waiting}`, "Add a worker that fits"],
  workers: () => ["/ui/workers", "box"],
  worker: () => ["/ui/workers/box", "Jobs handled"],
  "add-worker": () => ["/ui/workers/add/ssh", "Show the plan"],
  artifacts: () => ["/ui/artifacts", "raw dataset"],
  artifact: () => [`/ui/artifacts/${ids.artifact}`, "Parameters of its job"],
  "artifact-preview": () => [`/ui/artifacts/${ids.artifact}?tab=preview`, "instruction"],
  "artifact-lineage": () => [`/ui/artifacts/${ids.artifact}?tab=lineage`, "1 job"],
  "artifact-files": () => [`/ui/artifacts/${ids.artifact}?tab=files`, "raw.parquet"],
  submit: () => ["/ui/submit?type=train", "Appears when the required fields are filled."],
  clone: () => [`/ui/submit?from=${ids.waiting}`, "Rate card default"],
  billing: () => ["/ui/billing?by=tag", "Written"],
  keys: () => ["/ui/keys", "stack user"],
  sessions: () => ["/ui/keys?tab=sessions", "this sign-in"],
  "not-found": () => ["/ui/nowhere", "There is no page at this address."],
};

const WALK_MS = 120_000;

inBrowser("pages", () => {
  beforeAll(async () => {
    [forge, browser] = await Promise.all([
      startForge({ HEARTBEAT_INTERVAL: "0.5" }),
      openBrowser(),
    ]);
    await forge.stack.startAgent("box");
    const made = await runJob(forge.user, "generate", { domain: "law", num_samples: 40 });
    ids.job = made.job_id;
    ids.artifact = String(made.result.dataset_id);
    const failed = await forge.user.submit("audit", { dataset_uri: "s3://nowhere/rows.parquet" });
    ids.failed = failed.job_id;
    const waiting = await forge.user.submit("train", {
      dataset_id: ids.artifact,
      model: "llama-3-8b",
      resources: { gpu: 8, gpu_type: "H100" },
      tags: ["nightly"],
    });
    ids.waiting = waiting.job_id;
  });

  afterAll(async () => {
    await browser?.close();
    await forge?.stop();
  });

  const show = async (page: Page, name: string): Promise<void> => {
    const [path, text] = PAGES[name]?.() ?? ["", ""];
    await goTo(page, path);
    await page.locator("#main").getByText(text).first().waitFor({ state: "attached" });
    // Overlays and tints have ended, and lists have been measured.
    await page.waitForTimeout(100);
  };

  test.each(FORMS)(
    "$name",
    async ({ name: form, dark, phone }) => {
      const { page, context, complaints } = await visit(browser, { dark, phone });
      await page.goto(`${forge.stack.apiUrl}/ui/`);
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      const problems = await lookAt(page, `sign-in-${form}`);
      await signIn(page, forge.user.key);
      for (const name of Object.keys(PAGES)) {
        await show(page, name);
        problems.push(...(await lookAt(page, `${name}-${form}`)));
      }
      expect(problems).toEqual([]);
      expect(complaints).toEqual([]);
      await context.close();
    },
    WALK_MS,
  );
});
