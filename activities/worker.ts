import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@temporalio/client";
import type { Worker } from "@temporalio/worker";
import { bootstrapTaskQueue } from "../core/fleet/bootstrap";
import type { Component } from "../platform/service";
import { registerSearchAttributes } from "../platform/temporal/client";
import type { Context } from "../services/context";
import { createActivities } from "./index";
import { notingStuckWrites } from "./stuck-writes";

const RETRY_MS = 1_000;
const DRAIN_MS = 5_000;

/** Its native part takes 50 MB, which a process that only serves the API need not have. */
const loadTemporal = () => import("@temporalio/worker");

/**
 * Sends Temporal's own log lines, workflow logs among them, through ours. A process has one runtime, which
 * ends with its last worker: after an outage there is none.
 */
async function installRuntime({ logger, metrics }: Context): Promise<void> {
  const { DefaultLogger, Runtime } = await loadTemporal();
  if (Runtime._instance) return;
  const bindAddress = await metrics.temporal.open();
  Runtime.install({
    telemetryOptions: { metrics: { prometheus: { bindAddress } } },
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
export class TemporalWorkerPart implements Component {
  readonly name = "temporal-worker";
  private workers: Worker[] = [];
  private running: Promise<void> = Promise.resolve();
  private stopped = false;

  constructor(
    private readonly ctx: Context,
    private readonly workflowBundlePath: string,
  ) {}

  start(): void {
    this.running = this.keepRunning();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.shutdown();
    await this.running;
  }

  private shutdown(): void {
    // A task that is given to a worker which stops would wait for its time-out.
    this.ctx.workerTemporal.client = undefined;
    for (const worker of this.workers) if (worker.getState() === "RUNNING") worker.shutdown();
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
    const { connection: to, address, namespace, taskQueue, stickyS } = this.ctx.config.temporal;
    const { NativeConnection, Worker } = await loadTemporal();
    await installRuntime(this.ctx);
    await registerSearchAttributes(this.ctx.temporal);
    const connection = await NativeConnection.connect(to);
    try {
      const common = {
        connection,
        namespace,
        activities: createActivities(this.ctx),
        shutdownGraceTime: DRAIN_MS,
        shutdownForceTime: 2 * DRAIN_MS,
        interceptors: { activity: [notingStuckWrites(this.ctx)] },
      };
      const worker = await Worker.create({
        ...common,
        taskQueue,
        workflowBundle: { codePath: this.workflowBundlePath },
        stickyQueueScheduleToStartTimeout: `${stickyS}s`,
        maxConcurrentActivityTaskExecutions: 50,
        maxConcurrentLocalActivityExecutions: 50,
      });
      // Steps on machines take an hour, and may hang: they have slots of their own.
      const steps = await Worker.create({
        ...common,
        taskQueue: bootstrapTaskQueue(taskQueue),
        maxConcurrentActivityTaskExecutions: 50,
      });
      this.workers = [worker, steps];
      if (this.stopped) return;
      this.ctx.workerTemporal.client = new Client({ connection, namespace });
      onRunning();
      this.ctx.logger.info({ address, taskQueue }, "Temporal worker runs");
      // One that fails must not leave the other behind.
      await Promise.all(this.workers.map((each) => each.run().finally(() => this.shutdown())));
    } finally {
      this.workers = [];
      this.ctx.workerTemporal.client = undefined;
      await connection.close();
    }
  }
}
