/**
 * To bill a job whose worker reports no rows, Forge counts the rows of its files. In these tests,
 * the count takes long, and processes freeze or die meanwhile.
 */

import { mkdirSync, renameSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { artifactPrefix, MANIFEST_FILE } from "../../core/artifacts/artifacts";
import { jobWorkflowId } from "../../core/workflow-ids";
import { childrenRunning } from "../../dev/stack/process-table";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { slowTest } from "../support/slow";
import { createTenant } from "../support/tenants";

const ROWS = 4_000_000;
/** More jobs than a process has slots for activities. */
const JOBS = 60;

let forge: Forge | undefined;
let freezing: NodeJS.Timeout | undefined;
const frozen = new Set<number>();

afterEach(async () => {
  clearInterval(freezing);
  for (const pid of frozen) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has ended.
    }
  }
  frozen.clear();
  await forge?.stop();
  forge = undefined;
});

/** The child processes in which a server reads tables. */
const readersOf = (server: number | undefined): number[] =>
  childrenRunning(server, "engine-process");

const SMALL = "q\na\nb\n";
const LARGE = `q\n${"0123456\n".repeat(ROWS)}`;

/**
 * Runs a job whose worker uploads this table and does not report its rows. @returns the job's id.
 */
async function completeWith(forge: Forge, csv: string, name = "w"): Promise<string> {
  const worker = await forge.worker(name);
  const { job_id: id } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  expect(await worker.upload(job, "scored.csv", csv)).toBeLessThan(300);
  await worker.complete(job, { metrics: {}, artifacts_uri: null });
  return id;
}

/** Waits for the job's end. The job's bill and manifest must have this number of rows. */
async function expectRows({ user }: Forge, id: string, rows: number): Promise<void> {
  await untilEnded(user, id, 60_000);
  expect(await user.get(`/api/billing/records/${id}`)).toMatchObject({
    metrics: { rows_processed: rows },
  });
  expect(await user.get(`/api/jobs/${id}/artifacts`)).toMatchObject({
    artifacts: [{ manifest: { num_rows: rows, verified: true } }],
  });
}

function freezeReaders(server: number | undefined): void {
  for (const reader of readersOf(server)) {
    process.kill(reader, "SIGSTOP");
    frozen.add(reader);
  }
}

/** Simulates a kernel that kills a reader because another process needs the machine's memory. */
test("a reader that is killed twice while it reads one file bills all rows", async () => {
  forge = await startForge({}, { own: ["server"] });
  // Any of several Temporal workers may finish the job, so watch the readers of all servers.
  const servers = forge.servers().map(({ pid }) => pid);
  const id = await completeWith(forge, LARGE);
  const killed = new Set<number>();
  const killTwo = async (): Promise<boolean> => {
    for (const reader of servers.flatMap(readersOf)) {
      if (killed.has(reader)) continue;
      await sleep(50);
      process.kill(reader, "SIGKILL");
      killed.add(reader);
    }
    return killed.size >= 2;
  };
  await waitFor("two readers to be killed", killTwo, { everyMs: 2, timeoutMs: 30_000 });
  await expectRows(forge, id, ROWS);
  await forge.proveInvariants();
}, 120_000);

test("the bill and the manifest are made from one measurement", async () => {
  forge = await startForge({}, { own: ["server"] });
  const { user, ctx, stack } = forge;
  const worker = await forge.worker("w");
  const { job_id: id } = await user.submit("audit", AUDIT);
  const job = await worker.take();
  expect(await worker.upload(job, "scored.csv", SMALL)).toBeLessThan(300);
  // The manifest can't be written while there is a folder in its place.
  const { dataset_id: datasetId = "" } = job.output_ids;
  const folder = join(stack.storeDir, artifactPrefix("audit", datasetId));
  mkdirSync(join(folder, MANIFEST_FILE), { recursive: true });
  await worker.complete(job, { metrics: {}, artifacts_uri: null });
  const isBilled = async () =>
    (await all(ctx.pool, "select from billing_records where job_id = $1", [id])).length > 0;
  await waitFor("the bill", isBilled);
  // Replace the table by one that has the same size but only one row. If Forge counted the rows
  // again, it would find one instead of two.
  writeFileSync(join(folder, "scored.csv"), "q\nabc\n");
  rmdirSync(join(folder, MANIFEST_FILE));
  await expectRows(forge, id, 2);
  await forge.proveInvariants();
  expect(await all(ctx.pool, "select from artifacts where measured is not null")).toEqual([]);
}, 120_000);

slowTest(
  "a reader that stands still, as on a disk that hangs, bills all rows",
  async () => {
    forge = await startForge({ FORGE_PREVIEW_TIMEOUT_S: "1" }, { own: ["server"] });
    // The reader of a small file is too fast to be frozen while it reads, so freeze it between two
    // files.
    const first = await completeWith(forge, SMALL);
    await expectRows(forge, first, 2);
    freezeReaders(forge.own("server").pid);
    expect(frozen.size).toBeGreaterThan(0);
    await expectRows(forge, await completeWith(forge, SMALL), 2);
    await forge.proveInvariants();
  },
  120_000,
);

slowTest(
  "a store that is away when a file's turn comes bills all rows",
  async () => {
    forge = await startForge({ FORGE_PREVIEW_TIMEOUT_S: "60" }, { own: ["server"] });
    const { ctx, stack } = forge;
    const { pid } = forge.own("server");
    const first = await completeWith(forge, LARGE, "w1");
    await waitFor("a reader", () => readersOf(pid).length > 0, { everyMs: 5 });
    freezeReaders(pid);
    expect(frozen.size).toBeGreaterThan(0);
    const second = await completeWith(forge, SMALL, "w2");
    const isInQueue = async () => {
      const handle = ctx.temporal.workflow.getHandle(jobWorkflowId(second));
      const { pendingActivities = [] } = (await handle.describe()).raw;
      return pendingActivities?.some(({ activityType }) => activityType?.name === "finishJob");
    };
    await waitFor("a regular activity", isInQueue, { timeoutMs: 30_000 });
    await sleep(1_500);
    renameSync(stack.storeDir, `${stack.storeDir}.away`);
    for (const reader of frozen) process.kill(reader, "SIGCONT");
    await sleep(3_000);
    renameSync(`${stack.storeDir}.away`, stack.storeDir);
    await expectRows(forge, second, 2);
    await expectRows(forge, first, ROWS);
    await forge.proveInvariants();
  },
  180_000,
);

slowTest(
  "a server that stands still while it counts rows bills them all",
  async () => {
    forge = await startForge({ FORGE_PREVIEW_TIMEOUT_S: "1" }, { own: ["server"] });
    const server = forge.own("server");
    const id = await completeWith(forge, LARGE);
    const counting = () => readersOf(server.pid).length > 0;
    await waitFor("counting to begin", counting, { everyMs: 5 });
    server.signal("SIGSTOP");
    // Freeze the server for longer than the time limit for reading the file. The time during which
    // the server is frozen must not count towards this limit.
    await sleep(1_000 + LARGE.length / 10_000 + 2_000);
    server.signal("SIGCONT");
    await expectRows(forge, id, ROWS);
    await forge.proveInvariants();
  },
  180_000,
);

slowTest(
  "while many results of one tenant are measured, another tenant's job gets its next attempt",
  async () => {
    forge = await startForge({ FORGE_PREVIEW_TIMEOUT_S: "600" }, { own: ["server"] });
    const { user, ctx } = forge;
    const other = await createTenant(forge, "other");
    const worker = await forge.worker("w");
    const { pid } = forge.own("server");
    freezing = setInterval(() => freezeReaders(pid), 20);
    for (let n = 0; n < JOBS; n++) {
      await user.submit("audit", AUDIT);
      const job = await worker.take();
      expect(await worker.upload(job, "scored.csv", SMALL)).toBeLessThan(300);
      await worker.complete(job, { artifacts_uri: null });
    }
    const measuring = async (): Promise<number> => {
      const query = `TaskQueue = '${ctx.config.temporal.taskQueue}' AND ExecutionStatus = 'Running'`;
      let count = 0;
      for await (const { workflowId } of ctx.temporal.workflow.list({ query })) {
        const { raw } = await ctx.temporal.workflow.getHandle(workflowId).describe();
        const pending = raw.pendingActivities ?? [];
        if (pending.some(({ activityType }) => activityType?.name === "finishJob")) count += 1;
      }
      return count;
    };
    await waitFor("regular activities of all", async () => (await measuring()) > 50, {
      timeoutMs: 90_000,
      everyMs: 1_000,
    });
    const { job_id: id } = await other.user.submit("audit", { ...AUDIT, max_attempts: 2 });
    const own = other.worker("other-w");
    await own.register();
    await own.fail(await own.take(), { retryable: true });
    const second = "select from attempts where job_id = $1 and attempt = 2";
    const isQueued = async () => (await all(ctx.pool, second, [id])).length === 1;
    await waitFor("its second attempt to be queued", isQueued, { timeoutMs: 30_000 });
  },
  280_000,
);
