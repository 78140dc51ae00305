import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, WorkerApi } from "./worker-api";

/** Behaviours of simulated workers, each observed in real fleets. */
export const BEHAVIOURS = [
  "normal",
  // Takes ten times as long.
  "slow",
  // Crashes during every second job and registers again with another boot id.
  "flapping",
  // Sends heartbeats, but after its first job never polls again and ignores commands.
  "deaf",
  // During every second job, sends no heartbeats for `silenceMs`. This is longer than the heartbeat
  // time-out. Then delivers the result, although the control plane has marked the attempt lost.
  "zombie",
  // Sends every result twice at the same time, and once more later.
  "double",
  // Reports jobs that it does not have, and impossible numbers.
  "liar",
] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

export interface SimulationOptions {
  apiUrl: string;
  workerKey: string;
  heartbeatMs: number;
  /** How long a poll waits, in seconds. */
  waitS: number;
  /** How long a job takes. */
  workMs: number;
  /** How long a zombie sends no heartbeats. Must exceed the control plane's heartbeat time-out. */
  silenceMs: number;
  /** The GPU of a worker. Default: no GPU. */
  gpuOf?: (workerId: string) => { name: string; memory_gb: number; count?: number };
  /** The body of job_result. Default: completed, with a thousand rows. */
  resultBodyOf?: (job: SimulatedJob) => object;
}

export interface SimulatedJob {
  job_id: string;
  attempt: number;
  job_type: string;
}

/** Counts over all simulated workers. */
export interface Tally {
  dispatched: number;
  accepted: number;
  refused: number;
  cancelled: number;
  crashes: number;
}

/** One worker, as the control plane sees it over HTTP. */
export class SimulatedWorker {
  private api: WorkerApi;
  private readonly stopping = new AbortController();
  private job: SimulatedJob | undefined;
  private silent = false;
  /** The last result of `alternateFailure`. */
  private failed = false;
  private heartbeats: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(
    readonly id: string,
    readonly behaviour: Behaviour,
    private readonly options: SimulationOptions,
    private readonly tally: Tally,
  ) {
    this.api = new WorkerApi(options.apiUrl, options.workerKey);
  }

  /** Registers the worker, then sends heartbeats and runs jobs until `stop` is called. */
  async start(): Promise<void> {
    await this.register();
    this.running = this.work();
    // Spread the first heartbeats over the interval, as in a fleet of real machines.
    this.heartbeats = setTimeout(
      () => this.startHeartbeats(),
      Math.random() * this.options.heartbeatMs,
    );
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.heartbeats);
    this.api.close();
    await this.running;
  }

  private get stopped(): boolean {
    return this.stopping.signal.aborted;
  }

  private async register(): Promise<void> {
    const body = {
      worker_id: this.id,
      gpu: this.options.gpuOf?.(this.id) ?? { name: "cpu", memory_gb: 0 },
      tags: ["simulated", this.behaviour],
      version: "simulator",
      boot_id: randomUUID(),
    };
    while (!this.stopped) {
      const answer = await this.post("register", body);
      if (answer?.status === 201) return;
      await this.pause(500);
    }
  }

  private startHeartbeats(): void {
    this.heartbeats = setInterval(() => void this.heartbeat(), this.options.heartbeatMs);
    void this.heartbeat();
  }

  private async heartbeat(): Promise<void> {
    if (this.silent) return;
    const reported =
      this.behaviour === "liar" ? { job_id: "job_of_somebody", attempt: 7 } : this.job;
    const answer = await this.post("heartbeat", {
      worker_id: this.id,
      gpu: { util: 50, mem_used: 1, mem_total: 2 },
      status: "idle",
      timestamp: new Date().toISOString(),
      ...reported,
    });
    if (answer?.body.error?.code === "worker_not_registered") await this.register();
    if (this.behaviour === "deaf") return;
    const isRevoked = answer?.body.commands?.some(
      ({ type, job_id }) => type !== "drain" && job_id === this.job?.job_id,
    );
    if (isRevoked) this.job = undefined;
  }

  private async work(): Promise<void> {
    while (!this.stopped) {
      const answer = await this.post("next_job", {
        worker_id: this.id,
        wait_seconds: this.options.waitS,
      });
      const { job_id: jobId, attempt = 0, job_type: type = "" } = answer?.body ?? {};
      if (answer?.status !== 200) await this.pause(500);
      if (!jobId) continue;
      this.tally.dispatched += 1;
      this.job = { job_id: jobId, attempt, job_type: type };
      await this.run(this.job);
      this.job = undefined;
      if (this.behaviour === "deaf") await this.pause(Number.MAX_SAFE_INTEGER);
    }
  }

  /** True for the first call and every second call after it, so a worker's first job fails. */
  private alternateFailure(): boolean {
    this.failed = !this.failed;
    return this.failed;
  }

  private async run(job: SimulatedJob): Promise<void> {
    const { workMs, silenceMs } = this.options;
    switch (this.behaviour) {
      case "slow":
        return await this.finish(job, workMs * 10);
      case "flapping":
        if (!this.alternateFailure()) return await this.finish(job, workMs);
        await this.pause(workMs * Math.random());
        return await this.crash();
      case "zombie":
        if (!this.alternateFailure()) return await this.finish(job, workMs);
        this.silent = true;
        await this.pause(silenceMs);
        this.silent = false;
        return await this.deliver(job);
      case "double":
        await this.pause(workMs);
        await Promise.all([this.deliver(job), this.deliver(job)]);
        await this.deliver(job);
        return;
      case "liar":
        await this.deliver({ ...job, attempt: job.attempt + 1 });
        await this.deliver({ ...job, job_id: "job_of_somebody" });
        await this.deliver(job, completed({ rows_processed: -1 }));
        return await this.finish(job, workMs);
      case "normal":
      case "deaf":
        return await this.finish(job, workMs);
    }
  }

  /** Works and delivers the result, unless a command revokes the job in the meantime. */
  private async finish(job: SimulatedJob, ms: number): Promise<void> {
    await this.pause(ms);
    if (this.job) return await this.deliver(job);
    this.tally.cancelled += 1;
    await this.post("job_result", this.resultOf(job, { status: "failed", error: "stopped" }));
  }

  private async deliver(
    job: SimulatedJob,
    end: object = this.options.resultBodyOf?.(job) ?? completed({ rows_processed: 1_000 }),
  ): Promise<void> {
    const result = this.resultOf(job, end);
    for (let tries = 1; !this.stopped && tries <= 20; tries++) {
      const answer = await this.post("job_result", result);
      if (answer && answer.status < 500) {
        if (answer.status === 200) this.tally.accepted += 1;
        else this.tally.refused += 1;
        return;
      }
      await this.pause(500);
    }
  }

  private resultOf({ job_id, attempt }: SimulatedJob, body: object): object {
    return { worker_id: this.id, job_id, attempt, ...body };
  }

  /** Breaks all connections, is offline for a while, and registers again without its job. */
  private async crash(): Promise<void> {
    this.tally.crashes += 1;
    this.silent = true;
    this.api.close();
    this.api = new WorkerApi(this.options.apiUrl, this.options.workerKey);
    await this.pause(this.options.workMs);
    this.job = undefined;
    this.silent = false;
    await this.register();
  }

  /** @returns undefined if the connection failed or the worker was stopped. */
  private async post(endpoint: string, body: object): Promise<Answer | undefined> {
    if (this.stopped) return undefined;
    return await this.api.post(`/worker/${endpoint}`, body).catch(() => undefined);
  }

  private async pause(ms: number): Promise<void> {
    const longest = 2 ** 31 - 1;
    await sleep(Math.min(ms, longest), undefined, { signal: this.stopping.signal }).catch(
      () => undefined,
    );
  }
}

const completed = (metrics: object): object => ({ status: "completed", result: {}, metrics });
