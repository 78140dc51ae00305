import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import { accessibilityProblems, checkPages, inBrowser, VIEWPORTS } from "../support/browser";
import { browserStage } from "../support/browser-stage";
import { untilEnded } from "../support/jobs";
import { oneFormOf } from "../support/slow";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

const stage = browserStage({ env: { FORGE_JOB_METRICS_S: "0.2" }, path: "/jobs" });

const lossAt = (step: number): number => 3 * Math.exp(-step / 40) + 0.6 + 0.05 * Math.sin(step);

inBrowser("models", () => {
  let worker: TestWorker;
  let running: DispatchedJob;
  const models: string[] = [];
  let training = "";

  beforeAll(async () => {
    const { user } = stage.forge;
    worker = await stage.forge.worker("gpu-1", { name: "NVIDIA A100", memory_gb: 80 });
    for (const epochs of [1, 3]) {
      const job = await submit("train", { dataset_id: "ds_x", model: "llama-3-8b", epochs });
      // The first curve has 150,000 points. A function call can't have so many arguments, so the
      // page must not pass the points as arguments, as in `Math.max(...points)`.
      const steps = epochs === 1 ? 150_000 : 60 * epochs;
      const loss_curve = Array.from({ length: steps }, (_, step) => [
        step,
        Number(lossAt(step).toFixed(2)),
      ]);
      await worker.upload(job, "metrics.json", JSON.stringify({ loss_curve, held_out: {} }));
      await worker.complete(job, {
        result: { training_steps: 60 * epochs, lr: 0.0002, parameter_count: 8_030_000_000 },
        metrics: { gpu_hours: 0, heldout_loss: 0.9 / epochs },
        artifacts_uri: undefined,
        logs_uri: undefined,
      });
      await untilEnded(user, job.job_id);
      models.push(job.output_ids.checkpoint_id ?? "");
      training = job.job_id;
    }
    const checkpoint_id = models[1];
    const evaluation = await submit("evaluate", { checkpoint_id, benchmark: "law-bench" });
    const scores = { overall: 0.8125, helpfulness: 0.79 };
    await worker.complete(evaluation, { result: { scores }, metrics: { samples_evaluated: 100 } });
    await untilEnded(user, evaluation.job_id);
    running = await submit("train", { dataset_id: "ds_x", model: "llama-3-8b" });
  });

  async function submit(type: "train" | "evaluate", payload: object): Promise<DispatchedJob> {
    await stage.forge.user.submit(type, { ...payload });
    return await worker.take();
  }

  test("a running job's curves grow; a job without metrics explains how to report them", async () => {
    const { job_id, attempt } = running;
    const page = await stage.open(`/jobs/${training}?tab=metrics`);
    await page.getByText("The worker reported no numbers while it ran.").waitFor();
    await stage.open(`/jobs/${job_id}?tab=metrics`);
    await page.getByText("The worker has reported no numbers yet.").waitFor();
    const report = async (progress: number, loss: number): Promise<unknown> =>
      await worker.heartbeat({
        job_id,
        attempt,
        progress,
        metrics: { loss, "eval/acc": progress },
      });
    await report(0.1, 3.5);
    await page.getByRole("img", { name: /^loss: from 3.5 to 3.5/ }).waitFor();
    // Forge keeps at most one point per 10 s. So make the first point 11 s older.
    await execute(stage.forge.ctx.pool, "update job_metrics set at = at - interval '11 seconds'");
    await report(0.2, 2.25);
    const curve = page.getByRole("img", { name: /^loss: from 3.5 to 2.25/ });
    await curve.waitFor();
    await page.getByRole("img", { name: /^progress: from 0.1 to 0.2/ }).waitFor();
    await curve.hover({ position: { x: 1, y: 20 } });
    await page.getByText("3.5", { exact: true }).last().waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("a model shows its loss by step, and its evaluations", async () => {
    const page = await stage.open(`/artifacts/${models[1]}?tab=training`);
    await page.getByRole("img", { name: /^loss: from 3.6 to 0\.6/ }).waitFor();
    await page.getByText("step 179").waitFor();
    const evaluations = page.getByRole("table", { name: "Evaluations" });
    await evaluations.getByText("0.8125").waitFor();
    await stage.open(`/artifacts/${models[0]}?tab=training`);
    await page.getByText("step 149,999").waitFor();
    await page.getByText("No evaluation of this model yet.").waitFor();
  });

  test("two models are compared at their own address, which shows the differences", async () => {
    const page = await stage.open(`/artifacts/${models[0]}`);
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByLabel("Second artifact").fill(models[1] ?? "");
    await page.keyboard.press("Enter");
    const row = page.getByRole("row", { name: /epochs/ }).first();
    await row.getByText("differs", { exact: false }).or(row.getByLabel("differs")).waitFor();
    expect(await row.getByRole("cell").allInnerTexts()).toEqual(["1", "3", "+2 (+200 %)"]);
    expect(page.url()).toContain(`/ui/artifacts/compare?a=${models[0]}&b=${models[1]}`);
    await page
      .getByRole("row", { name: /heldout_loss/ })
      .getByText("−0.6 (−66.7 %)")
      .waitFor();
    expect(await page.getByRole("row", { name: /base_model/ }).count()).toBe(0);
    await page.getByLabel("Show what is equal").check();
    await page.getByRole("row", { name: /base_model/ }).waitFor();
    await page.getByRole("link", { name: "Swap" }).click();
    await page.waitForURL(/a=.*&b=.*equal=shown/);
    expect(await row.getByRole("cell").allInnerTexts()).toEqual(["3", "1", "−2 (−66.7 %)"]);
  });

  test.each(oneFormOf(VIEWPORTS))("pages in $name", async (form) => {
    const seen = await checkPages(stage.browser, stage.forge.user, form, {
      "job-metrics": [`/jobs/${running.job_id}?tab=metrics`, "eval/acc"],
      "artifact-training": [`/artifacts/${models[1]}?tab=training`, "law-bench"],
      compare: [`/artifacts/compare?a=${models[0]}&b=${models[1]}`, "heldout_loss"],
    });
    expect(seen).toEqual({ problems: [], pageErrors: [] });
  });

  test("its files are deleted after a confirmation, and its manifest stays", async () => {
    const page = await stage.open(`/artifacts/${models[0]}`);
    await page.getByRole("button", { name: "Delete files" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete the files of this artifact?" });
    await dialog.getByRole("button", { name: "Keep it" }).and(page.locator(":focus")).waitFor();
    await dialog.getByRole("button", { name: "Delete the files" }).click();
    await page.getByText("Its files are deleted.").waitFor();
    await waitFor("the deletion", async () => {
      const found = await stage.forge.user.get<{ deleted_at: string | null }>(
        `/api/artifacts/${models[0]}`,
      );
      return found.deleted_at !== null;
    });
  });
});
