import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "@temporalio/worker";
import type { Context } from "../infra/context";
import type { Logger } from "../infra/logger";
import type { Part } from "../infra/service";
import { registerSearchAttributes } from "../infra/temporal";
import { createActivities } from "./index";

const RETRY_MS = 1_000;
const DRAIN_MS = 5_000;

/** Its native part takes 50 MB, which a process that only serves the API need not have. */
const loadTemporal = () => import("@temporalio/worker");

/** Sends Temporal's own log lines, workflow logs among them, through ours. Once per process. */
async function installRuntime(logger: Logger): Promise<void> {
  const { DefaultLogger, Runtime } = await loadTemporal();
  Runtime.install({
    logger: new DefaultLogger("INFO", ({ level, message, meta }) => {
      const { error, ...rest } = meta ?? {};
      const line = { ...rest, ...(error === undefined ? {} : { err: error }), source: "temporal" };
      if (level === "ERROR") logger.error(line, message);
      else if (level === "WARN") logger.warn(line, message);
      else logger.info(line, message);
    }),
    shutdownSignals: [],
  });
}

/** The Temporal worker as a part of a server: starts with Temporal away, and outlives its absence. */
export class TemporalWorkerPart implements Part {
  readonly name = "temporal-worker";
  private worker: Worker | undefined;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;

  constructor(
    private readonly ctx: Context,
    private readonly workflowBundlePath: string,
  ) {}

  start(): void {
    this.running = installRuntime(this.ctx.logger).then(() => this.keepRunning());
  }

  async stop(): Promise<void> {
    this.stopped = true;
    if (this.worker?.getState() === "RUNNING") this.worker.shutdown();
    await this.running;
  }

  private async keepRunning(): Promise<void> {
    let told = false;
    while (!this.stopped) {
      try {
        await this.runOnce(() => {
          told = false;
        });
      } catch (error) {
        if (!told) this.ctx.logger.warn({ err: String(error) }, "Temporal worker is waiting");
        told = true;
        await sleep(RETRY_MS);
      }
    }
  }

  private async runOnce(onRunning: () => void): Promise<void> {
    const { address, namespace, taskQueue } = this.ctx.config.temporal;
    const { NativeConnection, Worker } = await loadTemporal();
    await registerSearchAttributes(this.ctx.temporal);
    const connection = await NativeConnection.connect({ address });
    try {
      this.worker = await Worker.create({
        connection,
        namespace,
        taskQueue,
        workflowBundle: { codePath: this.workflowBundlePath },
        activities: createActivities(this.ctx),
        shutdownGraceTime: DRAIN_MS,
        maxConcurrentActivityTaskExecutions: 50,
        maxConcurrentLocalActivityExecutions: 50,
      });
      if (this.stopped) return;
      onRunning();
      this.ctx.logger.info({ address, taskQueue }, "Temporal worker runs");
      await this.worker.run();
    } finally {
      this.worker = undefined;
      await connection.close();
    }
  }
}
