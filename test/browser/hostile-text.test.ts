import type { Browser } from "playwright-core";
import { inBrowser, openBrowser, openSignedIn, type Visit, visit } from "../support/browser";
import { type Forge, startForge } from "../support/forge";

/** What tenants and workers write is shown as text, wherever it stands. */
let forge: Forge;
let browser: Browser;
let at: Visit;

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
];
const TEXT = CORPUS.join(" ");

inBrowser("hostile text", () => {
  let jobId = "";

  beforeAll(async () => {
    [forge, browser] = await Promise.all([startForge(), openBrowser()]);
    at = await visit(browser);
    const worker = await forge.worker("hostile", { name: TEXT.slice(0, 100), memory_gb: 0 });
    const { job_id } = await forge.user.submit("generate", {
      task: TEXT,
      size: 5,
      teacher: CORPUS[1],
      domain: CORPUS[2],
      tags: CORPUS.slice(0, 4),
      notes: TEXT,
      params: { [CORPUS[0] ?? ""]: TEXT },
    });
    jobId = job_id;
    const job = await worker.take();
    await appendLog(jobId);
    await worker.fail(job, { error: TEXT });
  });

  /** As a worker writes it. */
  const appendLog = async (id: string): Promise<void> => {
    const bytes = Buffer.from(`${CORPUS.join("\n")}\n\u001b[31m${CORPUS[0]}\u001b[0m\n`);
    const path = `/worker/jobs/${id}/log?worker_id=hostile&attempt=1`;
    const answer = await fetch(`${forge.stack.apiUrl}${path}`, {
      method: "PATCH",
      headers: {
        "x-service-api-key": forge.stack.keys.workerKey,
        "content-type": "application/octet-stream",
        "content-range": `bytes 0-${bytes.length - 1}/*`,
      },
      body: bytes,
    });
    if (answer.status !== 202) throw new Error(await answer.text());
  };

  afterAll(async () => {
    await browser?.close();
    await forge?.stop();
  });

  test("runs nowhere", async () => {
    const { page, complaints } = at;
    await openSignedIn(page, forge.user, "/ui/");
    const visits: [path: string, text: string][] = [
      ["/ui/", "Failures"],
      ["/ui/jobs", "Failed"],
      [`/ui/jobs/${jobId}`, "alert(1)"],
      [`/ui/jobs/${jobId}?tab=log&q=${encodeURIComponent("alert(2)")}`, "1 line"],
      ["/ui/workers", "hostile"],
      ["/ui/workers/hostile", "alert(1)"],
      [`/ui/jobs?tag=${encodeURIComponent(CORPUS[0] ?? "")}`, "tag: <script>"],
    ];
    for (const [path, text] of visits) {
      await page.goto(`${forge.stack.apiUrl}${path}`);
      await page.getByText(text).first().waitFor({ state: "attached" });
      await page.waitForTimeout(200);
      const made = await page.evaluate(
        'document.querySelectorAll("iframe, main img, main script, [onerror], [onload]").length',
      );
      expect([path, made]).toEqual([path, 0]);
    }
    expect(complaints).toEqual([]);
  });
});
