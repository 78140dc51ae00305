import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@temporalio/client";
import type { Worker } from "@temporalio/worker";
import { bootstrapTaskQueue } from "../core/fleet/bootstrap";
import type { Component } from "../platform/service";
import { registerSearchAttributes } from "../platform/temporal/client";
import { ACTIVITY_SLOTS, type Context } from "../services/context";
import { createActivities } from "./index";
import { recordStuckWrites } from "./stuck-writes";

const RETRY_MS = 1_000;
const DRAIN_MS = 5_000;

/**
 * Imports Temporal's worker library on demand: its native part takes 50 MB of memory, and API-only
 * processes don't need it.
 */
const loadTemporal = () => import("@temporalio/worker");

/**
 * Installs Temporal's runtime, which sends Temporal's log lines, including those of workflows, to
 * our logger. A process has at most one runtime. The runtime ends with its last worker, so it is
 * installed again after an outage.
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

/** Runs a server's Temporal workers. Waits while Temporal is down, reconnects after outages. */
export class TemporalWorkerComponent implements Component {
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
    // Start no more workflows with this client (services/jobs/job-workflows.ts). Temporal would
    // give their first tasks to this process's worker, which runs no more tasks while it stops.
    this.ctx.workerTemporal.client = undefined;
    for (const worker of this.workers) if (worker.getState() === "RUNNING") worker.shutdown();
  }

  private async keepRunning(): Promise<void> {
    let isWarned = false;
    while (!this.stopped) {
      try {
        await this.runOnce(() => {
          isWarned = false;
        });
      } catch (error) {
        if (!isWarned) this.ctx.logger.warn({ err: String(error) }, "Temporal worker is waiting");
        isWarned = true;
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
        interceptors: { activity: [recordStuckWrites(this.ctx)] },
      };
      const worker = await Worker.create({
        ...common,
        taskQueue,
        workflowBundle: { codePath: this.workflowBundlePath },
        stickyQueueScheduleToStartTimeout: `${stickyS}s`,
        maxConcurrentActivityTaskExecutions: ACTIVITY_SLOTS,
        maxConcurrentLocalActivityExecutions: ACTIVITY_SLOTS,
      });
      // Bootstrap steps may take an hour or hang, so they have their own slots.
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
      // If one worker fails, stop both.
      await Promise.all(this.workers.map((each) => each.run().finally(() => this.shutdown())));
    } finally {
      this.workers = [];
      this.ctx.workerTemporal.client = undefined;
      await connection.close();
    }
  }
}
