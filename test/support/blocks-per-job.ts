import type pg from "pg";
import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { blocksReadSoFar } from "./blocks-read";
import { AUDIT, untilEnded } from "./jobs";
import type { TestStack } from "./test-stack";
import { TestWorker } from "./test-worker";

/**
 * Counts the blocks of tables and indexes that servers read for jobs. No other process uses the
 * database.
 */
export class BlocksPerJob {
  /** @param pool has only one connection. */
  constructor(
    private readonly servers: TestStack,
    private readonly pool: pg.Pool,
  ) {}

  /**
   * The blocks read per job. Leaves out what the server reads when it starts, but includes what
   * background sweeps read while the jobs run.
   */
  async measure(): Promise<number> {
    const few = await this.blocksFor(4);
    return ((await this.blocksFor(24)) - few) / 20;
  }

  /**
   * Runs jobs, one after the other, on a new server. Returns the blocks that the server has read.
   */
  private async blocksFor(jobs: number): Promise<number> {
    const { stack } = this.servers;
    const before = await this.blocksRead();
    // With this setting, the reconciler ignores jobs that changed in the last 24 hours. Otherwise
    // the reconciler would start workflows for the jobs that the test inserts by SQL.
    await stack.startServer({ FORGE_RECONCILE_AFTER_S: "86400", FORGE_HEARTBEAT_TIMEOUT_S: "600" });
    const user = new ApiClient(stack.apiUrl, stack.keys.userKey);
    const worker = new TestWorker(new ApiClient(stack.apiUrl, stack.keys.workerKey), "w");
    await worker.register();
    // Submit two jobs at a time, to measure both ways of assignment: the first job is assigned when
    // it is submitted, and the second one by a scheduler pass.
    for (let n = 0; n < jobs; n += 2) {
      const pair = [await user.submit("audit", AUDIT), await user.submit("audit", AUDIT)];
      const first = await worker.take();
      await worker.heartbeat({ job_id: first.job_id, attempt: first.attempt, progress: 0.5 });
      await worker.complete(first);
      await worker.complete(await worker.take());
      for (const { job_id } of pair) {
        expect((await untilEnded(user, job_id)).status).toBe("completed");
      }
    }
    // Stop the server first: a connection may report its reads to Postgres only when it ends.
    await stack.server?.stop();
    return (await this.blocksRead()) - before;
  }

  /** The blocks that all connections have read so far. */
  private async blocksRead(): Promise<number> {
    await waitFor("the connections of the last server to have ended", async () => {
      const { rows } = await this.pool.query(
        "select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
      );
      return rows.length === 0;
    });
    return await blocksReadSoFar(this.pool, null);
  }
}
