/** Text from tenants and workers is always shown as text. */

import { execute } from "../../platform/postgres/pool";
import { inBrowser, openSignedIn } from "../support/browser";
import { browserStage } from "../support/browser-stage";
import { untilEnded } from "../support/jobs";
import { BYO_DATA, startPipeline, untilPipeline } from "../support/pipelines";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

const CORPUS = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(2)>",
  '"><svg onload=alert(3)>',
  "javascript:alert(4)",
  "{{constructor.constructor('alert(5)')()}}",
  "<iframe srcdoc='<script>alert(6)</script>'>",
  "<a href=javascript:alert(7)>x</a>",
  "${alert(8)}",
  "</title><script>alert(9)</script>",
] as const;
const [SCRIPT, IMAGE, SVG] = CORPUS;
const TEXT = CORPUS.join(" ");
/**
 * A text with Unicode bidirectional control characters, which reverse the text after it. The API
 * refuses these characters in names and tags of tenants (test/contract), but workers may report
 * them.
 */
const TURNED = "\u202ednuora\u2066";

/**
 * JavaScript for `page.evaluate`. Finds each text with a bidirectional control character that could
 * also reverse other text. The effect of the character ends at the nearest ancestor element that is
 * not inline or that isolates its text. So this element must not contain other text. Returns the
 * HTML around each text that is found.
 */
const LOOSE = `[...document.querySelectorAll("main *")].flatMap(({ childNodes }) => [...childNodes]).filter((node) => {
  if (node.nodeType !== Node.TEXT_NODE || !/[\\u202a-\\u202e\\u2066-\\u2069]/.test(node.data)) return false;
  const isOpen = (element) => {
    const { display, unicodeBidi } = getComputedStyle(element);
    return display === "inline" && unicodeBidi === "normal";
  };
  let around = node.parentElement;
  while (isOpen(around)) around = around.parentElement;
  return around.textContent.trim() !== node.data.trim();
}).map(({ data, parentElement }) => parentElement.outerHTML.slice(0, 200))`;

const stage = browserStage();

inBrowser("hostile text", () => {
  let worker: TestWorker;
  let failed = "";
  let made = "";
  let dataset = "";
  let pipeline = "";

  beforeAll(async () => {
    const { user } = stage.forge;
    worker = await stage.forge.worker("hostile");
    await worker.register(
      { name: TEXT.slice(0, 100), memory_gb: 0 },
      {
        tags: [...CORPUS.slice(0, 4), TURNED],
        version: SCRIPT,
      },
    );
    // The API validates host names; the page must not rely on that.
    await execute(stage.forge.ctx.pool, "update workers set ssh_host = $1", [SVG]);
    failed = (await runJob(fail)).job_id;
    made = (await runJob(complete)).output_ids.dataset_id ?? "";
    await untilEnded(user, failed);
    dataset = await upload();
    pipeline = await rejectedPipeline();
    for (const name of [SCRIPT, TEXT.slice(0, 128)])
      await user.post("/api/auth/api-keys", { name });
  });

  async function rejectedPipeline(): Promise<string> {
    const { user } = stage.forge;
    const id = await startPipeline(user, {
      ...{ ...BYO_DATA, name: TEXT.slice(0, 250), tags: CORPUS.slice(0, 4) },
      ...{ gates: [], approvals: ["audit"] },
    });
    await untilPipeline(user, id, ["waiting_approval"]);
    await user.post(`/api/pipelines/${id}/approve`, {
      ...{ step: "audit", approved: false, note: `${TEXT} ${TURNED}` },
    });
    await untilPipeline(user, id);
    return id;
  }

  async function runJob(end: (job: DispatchedJob) => Promise<unknown>): Promise<DispatchedJob> {
    await stage.forge.user.submit("generate", {
      task: TEXT,
      size: 5,
      teacher: IMAGE,
      domain: SVG,
      tags: CORPUS.slice(0, 4),
      notes: TEXT,
      params: { [SCRIPT]: TEXT },
    });
    const job = await worker.take();
    await end(job);
    await untilEnded(stage.forge.user, job.job_id);
    return job;
  }

  async function fail(job: DispatchedJob): Promise<void> {
    const log = `${CORPUS.join("\n")}\n${TURNED}\nERROR ${IMAGE}\n\u001b[31m${SCRIPT}\u001b[0m\n`;
    expect(await worker.log(job, log)).toBe(202);
    await worker.fail(job, { error: `${TEXT} ${TURNED}` });
  }

  async function complete(job: DispatchedJob): Promise<void> {
    const rows = `${JSON.stringify({ [IMAGE]: SCRIPT })}\n`;
    for (const name of [`${IMAGE}.jsonl`, SCRIPT]) {
      expect(await worker.upload(job, name, rows)).toBeLessThan(300);
    }
    await worker.complete(job, {
      result: { git_commit: `${TEXT} ${TURNED}`, quality: { [SCRIPT]: TEXT, quality_tier: IMAGE } },
      metrics: { tokens_generated: 1_000_000, [SVG]: 7 },
      artifacts_uri: undefined,
      logs_uri: undefined,
    });
  }

  async function upload(): Promise<string> {
    const { stack } = stage.forge;
    const answer = await fetch(
      `${stack.apiUrl}/api/datasets?name=${encodeURIComponent(TEXT.slice(0, 250))}`,
      {
        method: "POST",
        headers: {
          "x-service-api-key": stack.keys.userKey,
          "content-type": "application/x-ndjson",
        },
        body: `${JSON.stringify({ [SVG]: TEXT })}\n`,
      },
    );
    expect(answer.status).toBe(201);
    return ((await answer.json()) as { dataset_id: string }).dataset_id;
  }

  test("is never run, and reverses no other text", async () => {
    const { page } = stage.at;
    await openSignedIn(page, stage.forge.user, "/ui/");
    const query = encodeURIComponent;
    const visits: [path: string, text: string][] = [
      ["/", "Failures"],
      ["/jobs", "Failed"],
      [`/jobs/${failed}`, "alert(1)"],
      [`/jobs/${failed}?tab=log&q=${query("attempt:1 level:error alert(2)")}`, "1 line"],
      [`/jobs?tag=${query(SCRIPT)}`, "tag: <script>"],
      [`/workers?gpu=${query(TEXT.slice(0, 100))}`, "hostile"],
      ["/workers/hostile", SVG],
      ["/artifacts", "alert(1)"],
      [`/artifacts/${made}`, "alert(8)"],
      [`/artifacts/${made}?tab=files`, `${IMAGE}.jsonl`],
      [`/artifacts/${made}?tab=preview`, SCRIPT],
      [`/artifacts/${made}?tab=lineage`, "1 job"],
      [`/artifacts/${made}?tab=manifest`, "alert(9)"],
      [`/artifacts/${dataset}`, "alert(1)"],
      [`/artifacts/${dataset}?tab=preview`, SVG],
      [`/artifacts/compare?a=${made}&b=${dataset}`, "alert(8)"],
      [`/submit?from=${failed}`, "Submit the generate job"],
      ["/pipelines", "alert(1)"],
      [`/pipelines/${pipeline}`, "rejected step audit"],
      [`/pipelines/${pipeline}?view=gantt`, "alert(7)"],
      [`/pipelines/${pipeline}?view=steps`, "alert(7)"],
      ["/keys", "alert(1)"],
      ["/billing?by=tag", "alert(1)"],
    ];
    for (const [path, text] of visits) {
      // A full page load, because the previous page may show the same text.
      await page.goto(`${stage.forge.stack.apiUrl}/ui${path}`);
      const shown = page.locator("#main").getByText(text).first();
      await shown.waitFor({ state: "attached" }).catch(async (cause: Error) => {
        const seen = await page.locator("#main").innerText();
        throw new Error(`${path} does not show ${text}, but shows: ${seen}`, { cause });
      });
      const elements = await page.evaluate(
        'document.querySelectorAll("iframe, main img, main script, [onerror], [onload]").length',
      );
      expect([path, elements]).toEqual([path, 0]);
      expect([path, await page.evaluate(LOOSE)]).toEqual([path, []]);
    }
  });
});
