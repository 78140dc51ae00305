import type { Job, JobRef, WaitOptions } from "./job.ts";
import type { CreateOptions, RequestOptions } from "./options.ts";
import { create } from "./request.ts";
import { ApiKeys, RateCards, Users } from "./resources/accounts.ts";
import { Artifacts } from "./resources/artifacts.ts";
import { Billing } from "./resources/billing.ts";
import { Datasets } from "./resources/datasets.ts";
import { Deployments } from "./resources/deployments.ts";
import { Jobs } from "./resources/jobs.ts";
import { Pipelines } from "./resources/pipelines.ts";
import { Service } from "./resources/service.ts";
import { Workers } from "./resources/workers.ts";
import type { Artifact, Job as JobAnswer } from "./schema.ts";
import { type ForgeOptions, type Settings, settingsOf } from "./settings.ts";
import type {
  AuditParams,
  DeployParams,
  DistillParams,
  EvaluateParams,
  GenerateParams,
  TrainParams,
} from "./submission.ts";
import { type TenantEvent, type TenantEventOptions, tenantEvents } from "./tenant-events.ts";
import { Transport } from "./transport.ts";

/**
 * A tenant's view of Forge.
 *
 * What isn't given is taken from `SERVICE_API_KEY` and `SERVICE_BASE_URL`, else, in Node, from the
 * local stack's stack.json in `FORGE_HOME`, by default `.forge`. Throws ForgeError where there is
 * none of it.
 *
 * Submissions take the names of either of the API's field sets; what is left out has its default.
 */
export class Forge {
  readonly jobs: Jobs;
  readonly pipelines: Pipelines;
  readonly datasets: Datasets;
  readonly artifacts: Artifacts;
  readonly billing: Billing;
  readonly workers: Workers;
  readonly deployments: Deployments;
  readonly apiKeys: ApiKeys;
  readonly users: Users;
  readonly rateCards: RateCards;
  readonly service: Service;
  readonly #settings: Settings;
  readonly #transport: Transport;

  constructor(options: ForgeOptions = {}) {
    this.#settings = settingsOf(options);
    const transport = new Transport(this.#settings);
    this.#transport = transport;
    this.jobs = new Jobs(transport);
    this.pipelines = new Pipelines(transport);
    this.datasets = new Datasets(transport);
    this.artifacts = new Artifacts(transport);
    this.billing = new Billing(transport);
    this.workers = new Workers(transport);
    this.deployments = new Deployments(transport);
    this.apiKeys = new ApiKeys(transport);
    this.users = new Users(transport);
    this.rateCards = new RateCards(transport);
    this.service = new Service(transport);
  }

  /** Makes a dataset: give `task`, `size`, `teacher`, or `domain` and `num_samples`. */
  async generate(params: GenerateParams, options?: CreateOptions): Promise<Job> {
    return await this.#submit("generate", params, options);
  }

  /** Scores the rows of a dataset. */
  async audit(params: AuditParams, options?: CreateOptions): Promise<Job> {
    return await this.#submit("audit", params, options);
  }

  /** Distils a dataset: `dataset_id` or `dataset_uri`, `teacher` or `teacher_model`. */
  async distill(params: DistillParams, options?: CreateOptions): Promise<Job> {
    return await this.#submit("distill", params, options);
  }

  /** Trains a checkpoint, in 3 epochs if nothing is said. */
  async train(params: TrainParams, options?: CreateOptions): Promise<Job> {
    return await this.#submit("train", { ...params, epochs: params.epochs ?? 3 }, options);
  }

  /** Scores a checkpoint, given as `checkpoint_id` or `model_id`. */
  async evaluate(params: EvaluateParams, options?: CreateOptions): Promise<Job> {
    return await this.#submit("evaluate", params, options);
  }

  /** Serves a checkpoint, given as `checkpoint_id` or `model_id`. */
  async deploy(params: DeployParams, options?: CreateOptions): Promise<Job> {
    return await this.#submit("deploy", params, options);
  }

  /** The job as it is now. */
  async status(job: JobRef, options?: RequestOptions): Promise<Job> {
    return await this.jobs.get(job, options);
  }

  /** The job when it has completed. Rejects with JobFailedError and WaitTimeoutError. */
  async wait(job: JobRef, options?: WaitOptions): Promise<Job> {
    return await this.jobs.wait(job, options);
  }

  /** What a job left behind: metadata and URIs. `client.artifacts` has the files. */
  async getArtifacts(job: JobRef, options?: RequestOptions): Promise<Artifact[]> {
    return await this.jobs.artifacts(job, options);
  }

  /**
   * Everything that happens to your jobs, pipelines, deployments and workers, from now on and through
   * cuts. It begins with `ready`.
   */
  events(options: TenantEventOptions = {}): AsyncGenerator<TenantEvent, void, undefined> {
    return tenantEvents(this.#transport, options);
  }

  /** The same client with other limits. */
  withOptions({ timeoutMs, maxRetries }: Pick<ForgeOptions, "timeoutMs" | "maxRetries">): Forge {
    return new Forge({
      ...this.#settings,
      timeoutMs: timeoutMs ?? this.#settings.timeoutMs,
      maxRetries: maxRetries ?? this.#settings.maxRetries,
    });
  }

  async #submit(type: string, params: object, options?: CreateOptions): Promise<Job> {
    const request = create(`/api/jobs/${type}`, params);
    return this.jobs.read(await this.#transport.json<JobAnswer>(request, options));
  }
}
