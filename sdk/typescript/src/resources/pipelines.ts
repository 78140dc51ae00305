import { Deadline } from "../deadline.ts";
import { PipelineFailedError } from "../errors.ts";
import { OUTAGE_MS } from "../following.ts";
import type { Listing, ListOptions } from "../listing.ts";
import type { CreateOptions, OfUser, RequestOptions } from "../options.ts";
import { pause } from "../pause.ts";
import { create, get, path, post, put } from "../request.ts";
import type { Operations, Pipeline, PipelineEstimate } from "../schema.ts";
import { Resource } from "./resource.ts";

/** The body of a new pipeline. It has either a `template` (with `params` per step) or `steps`. */
export type PipelineSubmission = Operations["createPipeline"]["body"];
type OfTemplate = Extract<PipelineSubmission, { template: unknown }>;

export interface PipelineFilters extends ListOptions, OfUser {
  status?: Pipeline["status"] | readonly Pipeline["status"][] | undefined;
  tag?: string | readonly string[] | undefined;
  /** The beginning of an id, or a part of a name or tag. */
  q?: string | undefined;
}

export interface PipelineWaitOptions extends RequestOptions {
  /** Poll interval in seconds. Default: 5. */
  pollInterval?: number | undefined;
  /** In seconds. Default: no time-out. */
  timeout?: number | undefined;
  /** Called with the first state, and after each change. */
  onUpdate?: ((pipeline: Pipeline) => void) | undefined;
  /** Also ends the wait when a step waits for approval. */
  stopAtApproval?: boolean | undefined;
}

/** `client.pipelines`. */
export class Pipelines extends Resource {
  /** Starts a pipeline from a body in the API's format. */
  async create(submission: PipelineSubmission, options?: CreateOptions): Promise<Pipeline> {
    return await this.transport.json(create("/api/pipelines", submission), options);
  }

  /**
   * Starts a pipeline from a template (`byo-data`, `synthetic`) with `params` for each step.
   *
   * A gate is `{ step: "evaluate", condition: "scores.overall >= 0.7" }`.
   */
  async run(
    template: OfTemplate["template"],
    params: NonNullable<OfTemplate["params"]> = {},
    more: Omit<OfTemplate, "template" | "params"> = {},
    options?: CreateOptions,
  ): Promise<Pipeline> {
    return await this.create({ template, params, ...more }, options);
  }

  /** Lists pipelines, newest first. `limit`: maximum number in total. */
  list(filters: PipelineFilters = {}, options?: RequestOptions): Listing<Pipeline> {
    return this.listing({ path: "/api/pipelines", name: "pipelines", query: filters, options });
  }

  /**
   * Estimates cost and duration of a pipeline. Does not start it.
   *
   * `submission`: as for `create`.
   */
  async estimate(
    submission: PipelineSubmission,
    options?: RequestOptions,
  ): Promise<PipelineEstimate> {
    return await this.transport.json(post("/api/pipelines/estimate", submission), options);
  }

  /** Reads the current state of the pipeline. */
  async get(pipelineId: string, options?: RequestOptions): Promise<Pipeline> {
    return await this.transport.json(get(path`/api/pipelines/${pipelineId}`), options);
  }

  /** Cancels the pipeline and its running jobs. */
  async cancel(pipelineId: string, options?: RequestOptions): Promise<Pipeline> {
    return await this.transport.json(post(path`/api/pipelines/${pipelineId}/cancel`), options);
  }

  /** Resumes from the failed step. With `from`, repeats that step and all later ones. */
  async resume(
    pipelineId: string,
    changes: Operations["resumePipeline"]["body"] = {},
    options?: CreateOptions,
  ): Promise<Pipeline> {
    const request = create(path`/api/pipelines/${pipelineId}/resume`, changes);
    return await this.transport.json(request, options);
  }

  /**
   * Approves a waiting step. With `approved: false`, rejects it: the pipeline fails.
   *
   * `step` defaults to the waiting step. Without `step`, the request is not retried if the response
   * is lost.
   */
  async approve(
    pipelineId: string,
    step?: string | null,
    { approved = true, note }: { approved?: boolean; note?: string } = {},
    options?: RequestOptions,
  ): Promise<Pipeline> {
    const body = { step: step ?? undefined, approved, note };
    const appliedCheck = {
      codes: ["no_step_waiting", "step_not_waiting"],
      path: path`/api/pipelines/${pipelineId}`,
      isOurs: (found: unknown) => {
        const given = (found as Pipeline).steps.find((each) => each.name === step)?.approval;
        return given?.approved === approved && given.note === (note ?? null);
      },
    };
    const request = post(path`/api/pipelines/${pipelineId}/approve`, body);
    // Without a step name, a retry could approve the next waiting step.
    const isRepeatable = step != null;
    return await this.transport.json({ ...request, isRepeatable, appliedCheck }, options);
  }

  /** Changes the budget of a running pipeline. null removes it. */
  async setBudget(
    pipelineId: string,
    budgetUsd: number | null,
    { warning_usd }: { warning_usd?: number } = {},
    options?: RequestOptions,
  ): Promise<Pipeline> {
    const body = { budget_usd: budgetUsd, warning_usd };
    return await this.transport.json(put(path`/api/pipelines/${pipelineId}/budget`, body), options);
  }

  /**
   * Waits until the pipeline has completed.
   *
   * Rejects with PipelineFailedError and WaitTimeoutError.
   */
  async wait(pipelineId: string, options: PipelineWaitOptions = {}): Promise<Pipeline> {
    const { pollInterval, timeout, onUpdate, stopAtApproval, ...rest } = options;
    const deadline = new Deadline(pipelineId, pollInterval, timeout);
    const request = get(path`/api/pipelines/${pipelineId}`);
    const poll = (signal: AbortSignal): Promise<Pipeline> => {
      const retryPolicy = this.transport.retryPolicy(rest, OUTAGE_MS);
      return this.transport.json(request, { ...rest, signal }, retryPolicy);
    };
    let last = "";
    for (;;) {
      const pipeline = await deadline.poll(poll, rest.signal);
      const now = JSON.stringify(pipeline);
      if (now !== last) onUpdate?.(pipeline);
      last = now;
      if (pipeline.status === "completed") return pipeline;
      if (hasEnded(pipeline)) throw new PipelineFailedError(pipeline);
      if (stopAtApproval && pipeline.status === "waiting_approval") return pipeline;
      deadline.check(pipeline.status);
      await pause(deadline.pauseMs(), rest.signal);
    }
  }
}

const hasEnded = ({ completed_at, status }: Pipeline): boolean =>
  completed_at != null || status === "failed" || status === "cancelled";
