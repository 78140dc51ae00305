/**
 * Each page in both themes, wide and on a phone: axe finds no serious problem, and nothing violates
 * the content security policy.
 */

import { runJob } from "../support/agent-jobs";
import { checkPage, inBrowser, show, signIn, VIEWPORTS, visit } from "../support/browser";
import { browserStage } from "../support/browser-stage";

const stage = browserStage({ env: { HEARTBEAT_INTERVAL: "0.5" } });
const ids = { job: "", failed: "", waiting: "", artifact: "" };

/** A page's path, and a text that appears when it has loaded. */
const PAGES: Record<string, () => [path: string, text: string | RegExp]> = {
  overview: () => ["/", "no worker fits"],
  jobs: () => ["/jobs", ids.job],
  "jobs-nothing-matches": () => ["/jobs?tag=none", "No job matches these filters."],
  job: () => [`/jobs/${ids.job}`, "completed the job in"],
  "job-log": () => [`/jobs/${ids.job}?tab=log&q=rows`, "1 line"],
  "job-bill": () => [`/jobs/${ids.job}?tab=bill`, "Rate card"],
  "job-failed": () => [`/jobs/${ids.failed}`, "The worker said"],
  "job-waiting": () => [`/jobs/${ids.waiting}`, "Add a worker that fits"],
  workers: () => ["/workers", "box"],
  worker: () => ["/workers/box", "audit"],
  "add-worker": () => ["/workers/add/ssh", "Show the plan"],
  artifacts: () => ["/artifacts", "raw dataset"],
  artifact: () => [`/artifacts/${ids.artifact}`, "Parameters of its job"],
  "artifact-preview": () => [`/artifacts/${ids.artifact}?tab=preview`, "instruction"],
  "artifact-lineage": () => [`/artifacts/${ids.artifact}?tab=lineage`, "1 job"],
  "artifact-files": () => [`/artifacts/${ids.artifact}?tab=files`, "raw.parquet"],
  submit: () => ["/submit?type=train", "Appears when the required fields are filled."],
  clone: () => [`/submit?from=${ids.waiting}`, "Rate card default"],
  billing: () => ["/billing?by=tag", "Written"],
  keys: () => ["/keys", "stack user"],
  sessions: () => ["/keys?tab=sessions", "this sign-in"],
  "not-found": () => ["/nowhere", "There is no page at this address."],
};

const WALK_MS = 120_000;

inBrowser("pages", () => {
  beforeAll(async () => {
    await stage.forge.stack.startAgent("box");
    const made = await runJob(stage.forge.user, "generate", { domain: "law", num_samples: 40 });
    ids.job = made.job_id;
    ids.artifact = String(made.result.dataset_id);
    const failed = await stage.forge.user.submit("audit", {
      dataset_uri: "s3://nowhere/rows.parquet",
    });
    ids.failed = failed.job_id;
    const waiting = await stage.forge.user.submit("train", {
      dataset_id: ids.artifact,
      model: "llama-3-8b",
      resources: { gpu: 8, gpu_type: "H100" },
      tags: ["nightly"],
    });
    ids.waiting = waiting.job_id;
  });

  test.each(VIEWPORTS)(
    "$name",
    async ({ name: form, dark, phone }) => {
      const { page, context, pageErrors } = await visit(stage.browser, { dark, phone });
      await page.goto(`${stage.forge.stack.apiUrl}/ui/`);
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      const problems = await checkPage(page, `sign-in-${form}`);
      await signIn(page, stage.forge.user.key);
      for (const name of Object.keys(PAGES)) {
        const [path, text] = PAGES[name]?.() ?? ["", ""];
        await show(page, path, text);
        problems.push(...(await checkPage(page, `${name}-${form}`)));
      }
      expect(problems).toEqual([]);
      expect(pageErrors).toEqual([]);
      await context.close();
    },
    WALK_MS,
  );
});
