import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { execute } from "../../platform/postgres/pool";
import { checkPages, inBrowser, openSignedIn, VIEWPORTS } from "../support/browser";
import { browserStage } from "../support/browser-stage";
import { type Deployment, deploy, read, servingWorker } from "../support/deployments";
import { answerByKeys } from "../support/keyboard";
import type { ServingWorker } from "../support/serving-worker";
import { oneFormOf } from "../support/slow";

const stage = browserStage();
let worker: ServingWorker;
let deployment: Deployment;
let asked = "";

const chunk = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

inBrowser("deployments", () => {
  beforeAll(async () => {
    await openSignedIn(stage.at.page, stage.forge.user, "/ui/deployments");
    await stage.at.page.getByText("Models that you deploy appear here").waitFor();
    worker = await servingWorker(stage.forge, "box");
    deployment = await deploy(stage.forge.user);
    const [model] = worker.served.values();
    if (!model) throw new Error("no model is served");
    model.answering = async (request, response) => {
      asked = await text(request);
      response.setHeader("content-type", "text/event-stream");
      for (const word of ["Two ", "and two ", "make <b>four</b>."]) {
        response.write(chunk(word));
        await sleep(50);
      }
      response.end("data: [DONE]\n\n");
    };
  });

  afterAll(async () => {
    await worker?.die();
  });

  test("is listed, and streams the answer to a prompt", async () => {
    const { page } = stage.at;
    await page.getByRole("link", { name: deployment.deployment_id }).click();
    await page.getByText("1 server answers.").waitFor();
    await page.getByText(`${stage.forge.stack.apiUrl}${deployment.url}`, { exact: true }).waitFor();
    await page.keyboard.press("t");
    await page.getByLabel("Question to the model").fill("What is 2 + 2?");
    await page.keyboard.press("Enter");
    // A model's answer is shown as text, even if it contains markup.
    await page.getByText("Two and two make <b>four</b>.").waitFor();
    await page.getByText(/^First word after/).waitFor();
    expect(JSON.parse(asked)).toMatchObject({
      model: deployment.deployment_id,
      stream: true,
      messages: [{ role: "user", content: "What is 2 + 2?" }],
    });
  });

  test("its requests, latency and tokens become curves", async () => {
    const { page } = stage.at;
    await page.getByRole("tab", { name: "Requests" }).click();
    // By itself, the server writes its counts to the database every ten seconds. Reading the
    // statistics writes them at once, so the page already counts the previous test's prompt.
    await page.getByText("none failed").waitFor({ timeout: 9_000 });
    const buckets = `
      insert into deployment_requests (deployment_id, slot, at, requests, errors, output_tokens, latency)
      select $1, extract(epoch from at)::bigint / 60 % 1440, at, 40 + 20 * sin(n), n % 7 / 6, 900 + 90 * n,
             array_fill(0, array[30 + n % 5]) || array[40]
      from generate_series(1, 60) n, date_trunc('minute', now() - make_interval(mins => 10 * n)) at`;
    await execute(stage.forge.ctx.pool, buckets, [deployment.deployment_id]);
    await page.reload();
    // The curve leaves out the current ten minutes, which have only one request so far.
    await page.getByRole("img", { name: /^Requests: from \d\d to \d\d,/ }).waitFor();
    await page.getByRole("img", { name: /^p99 latency: from/ }).waitFor();
    await page.getByRole("img", { name: /^Tokens written: from/ }).waitFor();
    await page.getByText("8 failed").waitFor();
    await page.getByRole("tab", { name: "Try it" }).click();
  });

  test("an error of its server is shown", async () => {
    const { page } = stage.at;
    worker.unhealthy.add(deployment.deployment_id);
    await page.getByText("No server answers", { exact: false }).first().waitFor();
    await page.getByLabel("Question to the model").fill("Are you there?");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText("The model did not answer.").waitFor({ timeout: 30_000 });
    worker.unhealthy.clear();
    await page.getByText("1 server answers.").waitFor({ timeout: 30_000 });
  });

  test("has code, servers and a bill", async () => {
    const { page } = stage.at;
    await page.getByRole("tab", { name: "Code" }).click();
    await page.getByText("from openai import OpenAI").waitFor();
    await page.getByRole("tab", { name: "Servers" }).click();
    await page.getByRole("table", { name: "Servers" }).getByRole("link", { name: "box" }).waitFor();
    await page.getByRole("tab", { name: "Bill" }).click();
    await page.getByText("so far, and growing").waitFor();
    expect(page.url()).toMatch(/tab=bill/);
  });

  test.each(oneFormOf(VIEWPORTS))("pages in $name", async (form) => {
    const path = `/deployments/${deployment.deployment_id}`;
    const seen = await checkPages(stage.browser, stage.forge.user, form, {
      deployments: ["/deployments", "Serving"],
      deployment: [path, "Enter sends."],
      "deployment-code": [`${path}?tab=code`, "from openai import OpenAI"],
      "deployment-requests": [`${path}?tab=requests`, "Median latency"],
      "deployment-servers": [`${path}?tab=servers`, "Served for"],
      "deployment-bill": [`${path}?tab=bill`, "Rate card"],
    });
    expect(seen).toEqual({ problems: [], pageErrors: [] });
  });

  test("is scaled, then stopped after a confirmation that lists the effects", async () => {
    const { page } = stage.at;
    await page.keyboard.press("e");
    await page.getByLabel("At most").fill("2");
    await page.getByRole("dialog").getByRole("button", { name: "Scale" }).click();
    await page.getByText("1 to 2 servers wanted").waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await answerByKeys(page, page.getByRole("button", { name: "Stop" }), "Stop the deployment");
    await page.getByText(/^It was stopped/).waitFor({ timeout: 30_000 });
    expect((await read(stage.forge.user, deployment.deployment_id)).status).toBe("stopped");
    await page.getByRole("tab", { name: "Try it" }).click();
    await page.getByText("It is stopped: there is no model to ask.").waitFor();
  });
});
