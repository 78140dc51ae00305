import type { IncomingMessage } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { countLatency, emptyCounts } from "../../core/deployments/latency";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../../services/context";
import { addRequests, type RequestCounts } from "../../services/deployments/deployment-requests";
import { UsageReader } from "./usage-reader";

/** One request to a deployment, from its arrival to the end of its response. */
export interface CountedRequest {
  /** Returns the response body to send. When the body ends, counts the request. */
  answered(answer: IncomingMessage, signal: AbortSignal): Readable;
  /** Counts the request as an error: no server answered it. */
  failed(): void;
}

/**
 * Counts requests to deployments in memory, and writes the counts to the database every few seconds
 * in one statement. No request waits for the write. A crash loses a few seconds of counts.
 */
export class DeploymentRequests implements Component {
  readonly name = "deployment requests";
  private counted = new Map<string, RequestCounts>();
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    const { requestIntervalS } = ctx.config.deployments;
    this.loop = new Loop("deployment requests", requestIntervalS * 1000, () => this.write(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
    // Write the remaining counts, so that a restart loses none.
    await this.write().catch(() => undefined);
  }

  begin(deploymentId: string): CountedRequest {
    const startMs = performance.now();
    const add = (isError: boolean, usage?: UsageReader): void =>
      this.add(deploymentId, performance.now() - startMs, isError, usage);
    return {
      failed: () => add(true),
      answered: (answer, signal) => {
        const usage = new UsageReader(answer.headers);
        pipeline(answer, usage, (error) => {
          // A caller that disconnects is not an error of the model.
          const hasFailed = error != null && !signal.aborted;
          add(hasFailed || (answer.statusCode ?? 0) >= 500, usage);
        });
        return usage;
      },
    };
  }

  /**
   * Writes this process's counts of a deployment now, so that a caller who then reads the
   * statistics sees the requests that it has just sent.
   */
  async writeCountsOf(deploymentId: string): Promise<void> {
    if (this.counted.has(deploymentId)) await this.write();
  }

  private add(deploymentId: string, ms: number, isError: boolean, usage?: UsageReader): void {
    const counts = this.counted.get(deploymentId) ?? noRequests(deploymentId);
    this.counted.set(deploymentId, counts);
    counts.requests += 1;
    if (isError) counts.errors += 1;
    countLatency(counts.latency, ms);
    const { input, output } = usage?.tokens() ?? {};
    if (input !== undefined) counts.input_tokens = (counts.input_tokens ?? 0) + input;
    if (output !== undefined) counts.output_tokens = (counts.output_tokens ?? 0) + output;
  }

  private async write(): Promise<void> {
    const { counted } = this;
    // Reset before the write, so that memory stays bounded if the write fails.
    this.counted = new Map();
    if (counted.size > 0) await addRequests(this.ctx.pool, [...counted.values()]);
  }
}

const noRequests = (deploymentId: string): RequestCounts => ({
  deployment_id: deploymentId,
  requests: 0,
  errors: 0,
  input_tokens: null,
  output_tokens: null,
  latency: emptyCounts(),
});
