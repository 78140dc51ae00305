import { isFinal, type JobEvent, type JobStatus, jobStatus } from "./job-status.ts";
import type { CreateOptions, RequestOptions } from "./options.ts";
import type { Artifact, Job as JobAnswer } from "./schema.ts";

/** A job's fields, as the API names them, but for `status`. */
export interface JobFields extends Omit<JobAnswer, "status"> {
  status: JobStatus;
  /** The state as the API names it, e.g. `provisioning_worker`. */
  raw_status: JobAnswer["status"];
}

/** A job, or its id. */
export type JobRef = string | { readonly job_id: string };

export const idOf = (job: JobRef): string => (typeof job === "string" ? job : job?.job_id);

export interface WaitOptions extends RequestOptions {
  /** In seconds, where no events arrive; by default 5. */
  pollInterval?: number | undefined;
  /** In seconds; by default there is no end. */
  timeout?: number | undefined;
  /** Is told of each status and progress. */
  onEvent?: ((event: JobEvent) => void) | undefined;
}

export interface LogOptions extends RequestOptions {
  /** Lines as they come, through further attempts, until nothing more will come. */
  follow?: boolean | undefined;
  /** By default the latest. */
  attempt?: number | undefined;
  /** Only the end of it. Not with `follow`. */
  tailBytes?: number | undefined;
}

/** What a job asks of the client that it was read by. */
export interface JobActions {
  get(job: JobRef, options?: RequestOptions): Promise<Job>;
  wait(job: JobRef, options?: WaitOptions): Promise<Job>;
  events(job: JobRef, options?: RequestOptions): AsyncGenerator<JobEvent, void, undefined>;
  logs(
    job: JobRef,
    options?: LogOptions,
  ): Promise<string> | AsyncGenerator<string, void, undefined>;
  cancel(job: JobRef, options?: RequestOptions): Promise<Job>;
  retry(job: JobRef, options?: CreateOptions): Promise<Job>;
  artifacts(job: JobRef, options?: RequestOptions): Promise<Artifact[]>;
}

export interface Job extends Readonly<JobFields> {}

/** A job as it was when it was read: `refresh` and `wait` return it as it is then. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the constructor sets each of the fields
export class Job {
  readonly #jobs: JobActions;

  constructor(jobs: JobActions, answer: JobAnswer) {
    this.#jobs = jobs;
    const status = jobStatus(answer.status, answer.completed_at != null);
    for (const [name, value] of Object.entries({ ...answer, status, raw_status: answer.status })) {
      // A later API's field does not take a method's place.
      if (!(name in Job.prototype)) Object.assign(this, { [name]: value });
    }
  }

  /** It has completed or failed, and nothing about it will change. */
  get isFinal(): boolean {
    return isFinal(this.status);
  }

  /** The job as it is now. */
  async refresh(options?: RequestOptions): Promise<Job> {
    return await this.#jobs.get(this.job_id, options);
  }

  /** The job when it has completed. Rejects with JobFailedError and WaitTimeoutError. */
  async wait(options?: WaitOptions): Promise<Job> {
    return await this.#jobs.wait(this.job_id, options);
  }

  /** Each status and progress, from the first to the last. Goes on after a cut. */
  events(options?: RequestOptions): AsyncGenerator<JobEvent, void, undefined> {
    return this.#jobs.events(this.job_id, options);
  }

  /** The log as a text, or, with `follow`, its lines as they come. */
  logs(options: LogOptions & { follow: true }): AsyncGenerator<string, void, undefined>;
  logs(options?: LogOptions & { follow?: false }): Promise<string>;
  logs(options?: LogOptions): Promise<string> | AsyncGenerator<string, void, undefined>;
  logs(options?: LogOptions): Promise<string> | AsyncGenerator<string, void, undefined> {
    return this.#jobs.logs(this.job_id, options);
  }

  /** Cancels it. Rejects with ConflictError where it is too late. */
  async cancel(options?: RequestOptions): Promise<Job> {
    return await this.#jobs.cancel(this.job_id, options);
  }

  /** A new job with the same payload. */
  async retry(options?: CreateOptions): Promise<Job> {
    return await this.#jobs.retry(this.job_id, options);
  }

  /** What it left behind. */
  async artifacts(options?: RequestOptions): Promise<Artifact[]> {
    return await this.#jobs.artifacts(this.job_id, options);
  }
}
