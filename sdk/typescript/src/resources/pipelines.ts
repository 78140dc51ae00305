import { Deadline } from "../deadline.ts";
import { PipelineFailedError } from "../errors.ts";
import { OUTAGE_MS } from "../following.ts";
import type { Listing, ListOptions } from "../listing.ts";
import type { CreateOptions, RequestOptions } from "../options.ts";
import { pause } from "../pause.ts";
import { create, get, path, post } from "../request.ts";
import type { Operations, Pipeline, PipelineEstimate } from "../schema.ts";
import { Resource } from "./resource.ts";

/** A whole pipeline: by a `template` and `params` by step, or by `steps` of one's own. */
export type PipelineSubmission = Operations["createPipeline"]["body"];
type OfTemplate = Extract<PipelineSubmission, { template: unknown }>;

export interface PipelineFilters extends ListOptions {
  status?: Pipeline["status"] | readonly Pipeline["status"][] | undefined;
  tag?: string | readonly string[] | undefined;
  /** The beginning of an id, or a part of a name or of a tag. */
  q?: string | undefined;
  user_id?: string | undefined;
}

export interface PipelineWaitOptions extends RequestOptions {
  /** In seconds; by default 5. */
  pollInterval?: number | undefined;
  /** In seconds; by default there is no end. */
  timeout?: number | undefined;
  /** Is told of it whenever something has changed. */
  onUpdate?: ((pipeline: Pipeline) => void) | undefined;
  /** Also end when a step waits for a person. */
  stopAtApproval?: boolean | undefined;
}

/** `client.pipelines`. */
export class Pipelines extends Resource {
  /** Begins one, as the API takes it. */
  async create(submission: PipelineSubmission, options?: CreateOptions): Promise<Pipeline> {
    return await this.transport.json(create("/api/pipelines", submission), options);
  }

  /**
   * Begins one by a template (`byo-data`, `synthetic`) and parameters by step.
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

  /** Pipelines, newest first; `limit` is how many in all. */
  list(filters: PipelineFilters = {}, options?: RequestOptions): Listing<Pipeline> {
    return this.listing({ path: "/api/pipelines", name: "pipelines", query: filters, options });
  }

  /** What a pipeline would cost and take, by the body that `create` takes. Nothing is submitted. */
  async estimate(
    submission: PipelineSubmission,
    options?: RequestOptions,
  ): Promise<PipelineEstimate> {
    return await this.transport.json(post("/api/pipelines/estimate", submission), options);
  }

  /** The pipeline as it is now. */
  async get(pipelineId: string, options?: RequestOptions): Promise<Pipeline> {
    return await this.transport.json(get(path`/api/pipelines/${pipelineId}`), options);
  }

  /** Cancels it, and the jobs under way. */
  async cancel(pipelineId: string, options?: RequestOptions): Promise<Pipeline> {
    return await this.transport.json(post(path`/api/pipelines/${pipelineId}/cancel`), options);
  }

  /** Goes on from what failed; with `from`, that step and all after it are done again. */
  async resume(
    pipelineId: string,
    changes: Operations["resumePipeline"]["body"] = {},
    options?: CreateOptions,
  ): Promise<Pipeline> {
    const request = create(path`/api/pipelines/${pipelineId}/resume`, changes);
    return await this.transport.json(request, options);
  }

  /**
   * Lets a step begin that waits for it; `approved: false` fails the pipeline.
   *
   * Without a `step` it is the one that waits; then it is not sent again where the answer is lost.
   */
  async approve(
    pipelineId: string,
    step?: string | null,
    { approved = true, note }: { approved?: boolean; note?: string } = {},
    options?: RequestOptions,
  ): Promise<Pipeline> {
    const body = { step: step ?? undefined, approved, note };
    const settled = {
      codes: ["no_step_waiting", "step_not_waiting"],
      path: path`/api/pipelines/${pipelineId}`,
      isOurs: (found: unknown) => {
        const given = (found as Pipeline).steps.find((each) => each.name === step)?.approval;
        return given?.approved === approved && given.note === (note ?? null);
      },
    };
    const request = post(path`/api/pipelines/${pipelineId}/approve`, body);
    // Without a name, said twice, it might be heard by the next step that waits.
    const isRepeatable = step != null;
    return await this.transport.json({ ...request, isRepeatable, settled }, options);
  }

  /** Changes the budget of one that is under way; null takes it away. */
  async setBudget(
    pipelineId: string,
    budgetUsd: number | null,
    { warning_usd }: { warning_usd?: number } = {},
    options?: RequestOptions,
  ): Promise<Pipeline> {
    const body = { budget_usd: budgetUsd, warning_usd };
    const request = { method: "PUT", path: path`/api/pipelines/${pipelineId}/budget`, body };
    return await this.transport.json(request, options);
  }

  /** The pipeline when it has completed. Rejects with PipelineFailedError and WaitTimeoutError. */
  async wait(pipelineId: string, options: PipelineWaitOptions = {}): Promise<Pipeline> {
    const { pollInterval, timeout, onUpdate, stopAtApproval, ...rest } = options;
    const deadline = new Deadline(pipelineId, pollInterval, timeout);
    const request = get(path`/api/pipelines/${pipelineId}`);
    const ask = (signal: AbortSignal): Promise<Pipeline> => {
      const patience = this.transport.patience(rest, OUTAGE_MS);
      return this.transport.json(request, { ...rest, signal }, patience);
    };
    let last = "";
    for (;;) {
      const pipeline = await deadline.ask(ask, rest.signal);
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
