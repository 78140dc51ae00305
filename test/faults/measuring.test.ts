import { setTimeout as sleep } from "node:timers/promises";
import { childrenRunning } from "../../dev/stack/process-table";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { slowTest } from "../support/slow";
import { createTenant } from "../support/tenants";

/** Results whose files take long to measure, and servers that stand still meanwhile. */
const ROWS = 4_000_000;
/** More than a process has activity slots. */
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
      // It has ended.
    }
  }
  frozen.clear();
  await forge?.stop();
  forge = undefined;
});

/** The processes of a server that read tables. */
const readersOf = (server: number | undefined): number[] =>
  childrenRunning(server, "engine-process");

slowTest(
  "a server that stands still while it counts rows bills them all",
  async () => {
    forge = await startForge({ FORGE_PREVIEW_TIMEOUT_S: "1" }, { own: ["server"] });
    const server = forge.own("server");
    const worker = await forge.worker("w");
    const { job_id: id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    const csv = `q\n${"0123456\n".repeat(ROWS)}`;
    expect(await worker.upload(job, "scored.csv", csv)).toBeLessThan(300);
    await worker.complete(job, { metrics: {}, artifacts_uri: null });
    const counting = () => readersOf(server.pid).length > 0;
    await waitFor("counting to begin", counting, { everyMs: 5 });
    server.signal("SIGSTOP");
    // Longer than the file may take.
    await sleep(1_000 + csv.length / 10_000 + 2_000);
    server.signal("SIGCONT");
    await untilEnded(forge.user, id, 60_000);
    expect(await forge.user.get(`/api/billing/records/${id}`)).toMatchObject({
      metrics: { rows_processed: ROWS },
    });
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
    freezing = setInterval(() => {
      for (const reader of readersOf(pid)) {
        process.kill(reader, "SIGSTOP");
        frozen.add(reader);
      }
    }, 20);
    for (let n = 0; n < JOBS; n++) {
      await user.submit("audit", AUDIT);
      const job = await worker.take();
      expect(await worker.upload(job, "scored.csv", "q\na\nb\n")).toBeLessThan(300);
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
