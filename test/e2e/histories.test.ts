import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { historyToJSON } from "@temporalio/common/lib/proto-utils";
import { DefaultLogger, Runtime, Worker } from "@temporalio/worker";
import { jobWorkflowId } from "../../core/workflow-ids";
import { checkoutRoot } from "../../dev/stack/paths";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

/**
 * Histories recorded from the real server are replayed against today's workflow code: a change that
 * would break jobs under way fails here. RECORD_HISTORIES=1 writes them anew.
 */
const DIRECTORY = join(checkoutRoot(), "test", "histories");
const bundle = { codePath: join(checkoutRoot(), "dist", "workflow-bundle.js") };

beforeAll(() => {
  Runtime.install({ logger: new DefaultLogger("ERROR") });
});

async function replay(history: unknown, workflowId: string): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle: bundle }, history, workflowId);
}

/** Drops what only tells on which machine a history was recorded. */
function withoutMachine(key: string, value: unknown): unknown {
  return key === "stackTrace" || key === "identity" ? undefined : value;
}

/** A history's text with its payloads readable. */
function decoded(json: string): string {
  return json.replaceAll(/"data": ?"([^"]*)"/g, (_all, data: string) =>
    Buffer.from(data, "base64").toString("utf8"),
  );
}

describe("recorded histories", () => {
  const files = readdirSync(DIRECTORY).filter((file) => file.endsWith(".json"));

  test("are of all four ways that a job goes", () => {
    expect(files.sort()).toEqual([
      "attempts-used-up.json",
      "failure.json",
      "success.json",
      "worker-lost.json",
    ]);
  });

  test.each(files)("%s replays", async (file) => {
    const history = JSON.parse(readFileSync(join(DIRECTORY, file), "utf8"));
    await replay(history, "job:recorded");
  });

  test("one that today's code would not write is refused", async () => {
    const history = JSON.parse(readFileSync(join(DIRECTORY, "worker-lost.json"), "utf8"));
    const text = JSON.stringify(history).replaceAll('"attempt-2"', '"attempt-7"');
    await expect(replay(JSON.parse(text), "job:recorded")).rejects.toThrow(/[Nn]ondetermini/);
  });
});

describe("today's code", () => {
  let forge: Forge;

  beforeAll(async () => {
    forge = await startForge({ FORGE_HEARTBEAT_TIMEOUT_S: "1" });
  });

  afterAll(async () => {
    await forge?.stop();
  });

  const ways: Record<string, () => Promise<string>> = {
    success: async () => {
      const worker = await forge.worker("good");
      const { job_id } = await forge.user.submit("audit", AUDIT);
      await worker.complete(await worker.take());
      return job_id;
    },
    failure: async () => {
      const worker = await forge.worker("bad");
      const { job_id } = await forge.user.submit("audit", AUDIT);
      await worker.fail(await worker.take());
      return job_id;
    },
    "worker-lost": async () => {
      const mortal = await forge.worker("mortal");
      const { job_id } = await forge.user.submit("audit", AUDIT);
      await mortal.take();
      const heir = await forge.worker("heir");
      heir.beat(200);
      await heir.complete(await heir.take());
      heir.silence();
      return job_id;
    },
    "attempts-used-up": async () => {
      const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
      for (const name of ["first", "second"]) {
        const worker = await forge.worker(name);
        worker.beat(200);
        await worker.take();
        worker.silence();
      }
      return job_id;
    },
  };

  test.each(Object.entries(ways))("%s: a small history, free of payloads", async (name, go) => {
    const jobId = await go();
    const job = await untilEnded(forge.user, jobId);
    const [status, code] = {
      success: ["completed", null],
      failure: ["failed", "job_error"],
      "worker-lost": ["completed", null],
      "attempts-used-up": ["failed", "worker_lost"],
    }[name] as [string, string | null];
    expect(job).toMatchObject({ status, error_code: code });
    await forge.proveInvariants();

    const handle = forge.ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));
    const history = await handle.fetchHistory();
    const json = historyToJSON(history);
    expect(history.events?.length).toBeLessThan(30);
    expect(decoded(json)).toContain(jobId);
    expect(decoded(json)).not.toContain("data.parquet");
    const { searchAttributes } = await handle.describe();
    expect(searchAttributes).toMatchObject({ ForgeJobType: ["audit"], ForgeUserId: ["local"] });
    if (process.env.RECORD_HISTORIES) {
      const file = join(DIRECTORY, `${name}.json`);
      writeFileSync(file, `${JSON.stringify(JSON.parse(json, withoutMachine), null, 1)}\n`);
    }
    await replay(history, handle.workflowId);
  });
});
