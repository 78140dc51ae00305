import type { Job, JobRef, WaitOptions } from "./job.ts";
import { JobTypeMethods } from "./job-type-methods.ts";
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
import { type TenantEvent, type TenantEventOptions, tenantEvents } from "./tenant-events.ts";
import { Transport } from "./transport.ts";

/**
 * The client of one tenant.
 *
 * In Node, missing options default to the environment variables `SERVICE_API_KEY` and
 * `SERVICE_BASE_URL`. If these are not set, the local stack's stack.json in `FORGE_HOME` (default
 * `.forge`) is used. Throws ForgeError if no key or no address is found.
 *
 * For some job types, the API has two sets of field names. For example, one set has `model`, and
 * the other set has `model_id`. The API accepts both sets. The API's defaults apply to missing
 * fields.
 */
export class Forge extends JobTypeMethods {
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
    super();
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

  /** Reads the current state of the job. */
  async status(job: JobRef, options?: RequestOptions): Promise<Job> {
    return await this.jobs.get(job, options);
  }

  /** Waits until the job has completed. Rejects with JobFailedError or WaitTimeoutError. */
  async wait(job: JobRef, options?: WaitOptions): Promise<Job> {
    return await this.jobs.wait(job, options);
  }

  /**
   * Lists the artifacts of a job: metadata and URIs.
   *
   * To read the files of an artifact, use `client.artifacts`.
   */
  async getArtifacts(job: JobRef, options?: RequestOptions): Promise<Artifact[]> {
    return await this.jobs.artifacts(job, options);
  }

  /**
   * Yields changes of your jobs, pipelines, deployments and workers, from now on. Reconnects after
   * interruptions. The first event is `ready`.
   */
  events(options: TenantEventOptions = {}): AsyncGenerator<TenantEvent, void, undefined> {
    return tenantEvents(this.#transport, options);
  }

  /** Returns a client with the same key and address, and another time-out or number of retries. */
  withOptions({ timeoutMs, maxRetries }: Pick<ForgeOptions, "timeoutMs" | "maxRetries">): Forge {
    return new Forge({
      ...this.#settings,
      timeoutMs: timeoutMs ?? this.#settings.timeoutMs,
      maxRetries: maxRetries ?? this.#settings.maxRetries,
    });
  }

  protected override async submitJob(
    type: string,
    params: object,
    options?: CreateOptions,
  ): Promise<Job> {
    const request = create(`/api/jobs/${type}`, params);
    return this.jobs.read(await this.#transport.json<JobAnswer>(request, options));
  }
}
