import { bodyOf, encode, HttpConnection } from "./http-connection";

const HEARTBEAT_MS = 5_000;
const WAIT_S = 50;
/** Number of workers that start at once. With more, the server's listen queue may overflow. */
const STARTED_AT_ONCE = 100;

export interface FleetOptions {
  url: string;
  workerKey: string;
  workers: number;
  /** Whether the workers are in the database already (seeded-rows.ts). */
  isRegistered?: boolean;
  /** Called when a worker has received a job. */
  onJob?: (jobId: string, at: number) => void;
}

interface NextJob {
  job_id: string | null;
  attempt: number;
}

/** Workers that poll, send heartbeats, and complete each job as soon as they receive it. */
export class Fleet {
  private readonly connections: HttpConnection[] = [];
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly loops: Promise<void>[] = [];
  private stopping = false;
  private heartbeatError: unknown;

  private constructor(private readonly options: FleetOptions) {}

  static async start(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options);
    const numbers = Array.from({ length: options.workers }, (_, n) => n);
    for (let n = 0; n < numbers.length; n += STARTED_AT_ONCE) {
      const some = numbers.slice(n, n + STARTED_AT_ONCE);
      await Promise.all(some.map((each) => fleet.startWorker(each)));
    }
    return fleet;
  }

  /** @throws Error if a heartbeat, a poll or a result was refused, or a heartbeat took too long. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const timer of this.timers) clearInterval(timer);
    for (const connection of this.connections) connection.close();
    await Promise.all(this.loops);
    if (this.heartbeatError !== undefined) throw this.heartbeatError;
  }

  private async startWorker(n: number): Promise<void> {
    const id = `bench-${n}`;
    const [main, second] = await Promise.all([this.connect(), this.connect()]);
    if (!this.options.isRegistered) {
      const gpu = { name: "cpu", memory_gb: 0 };
      bodyOf(await main.send(this.call("register", { worker_id: id, gpu, tags: [] })));
    }
    const heartbeat = this.call("heartbeat", { worker_id: id });
    const beat = async (): Promise<void> => {
      try {
        if (second.isBusy) throw new Error(`a heartbeat took more than ${HEARTBEAT_MS / 1000} s`);
        bodyOf(await second.send(heartbeat));
      } catch (error) {
        if (!this.stopping) this.heartbeatError ??= error;
      }
    };
    // Spread the heartbeats over the interval, as if the workers had started at different times.
    const startBeating = (): void =>
      void this.timers.push(setInterval(() => void beat(), HEARTBEAT_MS));
    this.timers.push(setTimeout(startBeating, (n / this.options.workers) * HEARTBEAT_MS));
    const loop = this.work(id, main).catch((error: unknown) => {
      if (!this.stopping) throw error;
    });
    // Without this handler an error would end the process before stop() reports it.
    loop.catch(() => undefined);
    this.loops.push(loop);
  }

  private async connect(): Promise<HttpConnection> {
    const connection = await HttpConnection.open(this.options.url);
    this.connections.push(connection);
    return connection;
  }

  private call(endpoint: string, body: object): Buffer {
    return encode({ method: "POST", path: `/worker/${endpoint}`, body }, this.options.workerKey);
  }

  private async work(id: string, connection: HttpConnection): Promise<void> {
    const poll = this.call("next_job", { worker_id: id, wait_seconds: WAIT_S });
    while (!this.stopping) {
      const { job_id, attempt } = bodyOf<NextJob>(await connection.send(poll));
      if (!job_id) continue;
      this.options.onJob?.(job_id, performance.now());
      const result = {
        worker_id: id,
        job_id,
        attempt,
        status: "completed",
        result: {},
        metrics: { rows_processed: 1_000 },
      };
      bodyOf(await connection.send(this.call("job_result", result)));
    }
  }
}
