import { setTimeout as sleep } from "node:timers/promises";
import { ModelServer } from "./model-server";
import type { DispatchedJob, TestWorker } from "./test-worker";

interface Command {
  type: string;
  deployment_id?: string;
}

/**
 * A worker that takes deploy jobs, serves their models, reports them in heartbeats, and obeys stop
 * commands.
 */
export class ServingWorker {
  readonly served = new Map<string, ModelServer>();
  readonly stopped: string[] = [];
  readonly jobs: DispatchedJob[] = [];
  /** Deployments that the worker serves but does not report. */
  hidden = new Set<string>();
  unhealthy = new Set<string>();
  /** Whether the worker obeys commands. */
  obeys = true;
  /** How many of the next jobs fail. */
  fails = 0;
  private readonly going = new AbortController();
  private running: Promise<unknown> = Promise.resolve();

  constructor(readonly worker: TestWorker) {}

  get id(): string {
    return this.worker.id;
  }

  start(): this {
    this.running = Promise.all([this.poll(), this.sendHeartbeats()]);
    return this;
  }

  /**
   * Stops sending heartbeats and polls. Also stops the models, unless the worker is only cut off
   * from the network.
   */
  async die(cutOff = false): Promise<void> {
    this.going.abort();
    await this.running;
    if (cutOff) return;
    await Promise.all([...this.served.values()].map((model) => model.stop()));
    this.served.clear();
  }

  async stop(id: string): Promise<void> {
    this.stopped.push(id);
    const model = this.served.get(id);
    this.served.delete(id);
    await model?.stop();
  }

  private async poll(): Promise<void> {
    while (!this.going.signal.aborted) {
      const job = await this.worker.next(0.5).catch(() => undefined);
      if (job) await this.work(job).catch(() => undefined);
      else await sleep(20);
    }
  }

  private async work(job: DispatchedJob): Promise<void> {
    this.jobs.push(job);
    if (this.fails > 0) {
      this.fails--;
      await this.worker.fail(job);
      return;
    }
    const id = String(job.output_ids.deployment_id);
    const model = await ModelServer.start(this.id);
    await this.served.get(id)?.stop();
    this.served.set(id, model);
    const { status } = await this.worker.complete(job, { result: { inference_url: model.url } });
    if (status !== 200) await this.stop(id);
  }

  private async sendHeartbeats(): Promise<void> {
    while (!this.going.signal.aborted) {
      const answer = await this.worker
        .heartbeat({
          deployments: [...this.served.keys()].filter((id) => !this.hidden.has(id)),
          unhealthy_deployments: [...this.unhealthy],
        })
        .catch(() => undefined);
      const commands: Command[] = answer?.commands ?? [];
      for (const { type, deployment_id: id } of commands) {
        if (type === "stop_deployment" && id !== undefined && this.obeys) await this.stop(id);
      }
      await sleep(100);
    }
  }
}
