import type { Answer, ApiClient } from "../../dev/api-client";

export interface DispatchedJob {
  job_id: string;
  job_type: string;
  payload: Record<string, unknown>;
  attempt: number;
  output_ids: Record<string, string>;
  serving_token?: string;
}

/** A worker controlled by the test, over the worker endpoints of spec.md 4.3. */
export class TestWorker {
  private heartbeats: NodeJS.Timeout | undefined;

  constructor(
    private readonly api: ApiClient,
    readonly id: string,
  ) {}

  async register(
    gpu: { name: string; memory_gb: number } = { name: "cpu", memory_gb: 0 },
    more: Record<string, unknown> = {},
  ): Promise<Answer> {
    return await this.api.call("POST", "/api/workers/register", {
      worker_id: this.id,
      gpu,
      tags: [],
      version: "1.0",
      ...more,
    });
  }

  async heartbeat(more: Record<string, unknown> = {}): Promise<{
    status: string;
    commands: { type: string; job_id: string }[];
  }> {
    return await this.api.post("/api/workers/heartbeat", {
      worker_id: this.id,
      gpu: { util: 0, mem_used: 0, mem_total: 0 },
      status: "idle",
      timestamp: new Date().toISOString(),
      ...more,
    });
  }

  /** Sends heartbeats until `stopHeartbeats`. */
  startHeartbeats(everyMs = 500): void {
    this.heartbeats = setInterval(() => {
      this.heartbeat().catch(() => undefined);
    }, everyMs);
  }

  stopHeartbeats(): void {
    clearInterval(this.heartbeats);
  }

  /** The response of next_job, with or without a job. */
  async ask(waitSeconds = 0): Promise<DispatchedJob | { job_id: null }> {
    return await this.api.post("/api/workers/next_job", {
      worker_id: this.id,
      wait_seconds: waitSeconds,
    });
  }

  async next(waitSeconds = 0): Promise<DispatchedJob | undefined> {
    const job = await this.ask(waitSeconds);
    return job.job_id === null ? undefined : job;
  }

  /** The next job. Throws if none arrives. */
  async take(waitSeconds = 20): Promise<DispatchedJob> {
    const job = await this.next(waitSeconds);
    if (!job) throw new Error(`no job for ${this.id} within ${waitSeconds} s`);
    return job;
  }

  async complete(job: DispatchedJob, more: Record<string, unknown> = {}): Promise<Answer> {
    return await this.report(job, {
      status: "completed",
      result: {},
      metrics: { rows_processed: 1000 },
      artifacts_uri: "s3://bucket/somewhere/",
      logs_uri: "s3://bucket/log.txt",
      ...more,
    });
  }

  async fail(job: DispatchedJob, more: Record<string, unknown> = {}): Promise<Answer> {
    return await this.report(job, { status: "failed", error: "out of luck", ...more });
  }

  /** Uploads a complete file of the attempt's artifact. @returns the response's status. */
  async upload(job: DispatchedJob, path: string, body: Buffer | string): Promise<number> {
    const file = path.split("/").map(encodeURIComponent).join("/");
    const query = `worker_id=${this.id}&attempt=${job.attempt}`;
    const response = await fetch(
      `${this.api.baseUrl}/worker/jobs/${job.job_id}/artifacts/${file}?${query}`,
      {
        method: "PUT",
        headers: {
          "x-service-api-key": this.api.key,
          "content-type": "application/octet-stream",
        },
        body,
      },
    );
    await response.arrayBuffer();
    return response.status;
  }

  /** Appends to the attempt's log. @returns the response's status. */
  async log(job: DispatchedJob, text: string, from = 0): Promise<number> {
    const query = `worker_id=${this.id}&attempt=${job.attempt}`;
    const response = await fetch(`${this.api.baseUrl}/worker/jobs/${job.job_id}/log?${query}`, {
      method: "PATCH",
      headers: {
        "x-service-api-key": this.api.key,
        "content-type": "text/plain",
        "content-range": `bytes ${from}-${from + Buffer.byteLength(text) - 1}/*`,
      },
      body: text,
    });
    await response.arrayBuffer();
    return response.status;
  }

  async report(job: { job_id: string }, body: Record<string, unknown>): Promise<Answer> {
    return await this.api.call("POST", "/worker/job_result", {
      worker_id: this.id,
      job_id: job.job_id,
      ...body,
    });
  }
}
