import { isFinal, type JobEvent, type JobStatus, jobStatus } from "./job-status.ts";
import type { CreateOptions, RequestOptions } from "./options.ts";
import type { Artifact, Job as JobAnswer } from "./schema.ts";

/** A job's fields, as in the API, except that `status` is simplified. */
export interface JobFields extends Omit<JobAnswer, "status"> {
  status: JobStatus;
  /** The API's status, e.g. `provisioning_worker`. */
  raw_status: JobAnswer["status"];
}

/** A job, or its id. */
export type JobRef = string | { readonly job_id: string };

export const idOf = (job: JobRef): string => (typeof job === "string" ? job : job?.job_id);

export interface WaitOptions extends RequestOptions {
  /** Poll interval in seconds, used if no events arrive. Default: 5. */
  pollInterval?: number | undefined;
  /** In seconds. Default: no time-out. */
  timeout?: number | undefined;
  /** Called for each change of status and progress. */
  onEvent?: ((event: JobEvent) => void) | undefined;
}

export interface LogOptions extends RequestOptions {
  /**
   * Yields lines as they arrive, until the log is complete. Without `attempt`, continues with the
   * logs of later attempts.
   */
  follow?: boolean | undefined;
  /** Default: the latest attempt. */
  attempt?: number | undefined;
  /** Reads only this many bytes, from the end of the log. Ignored with `follow`. */
  tailBytes?: number | undefined;
}

/** The client's methods that a job uses. */
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

/** A snapshot of a job. `refresh` and `wait` return a new snapshot. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the constructor sets each of the fields
export class Job {
  readonly #jobs: JobActions;

  constructor(jobs: JobActions, answer: JobAnswer) {
    this.#jobs = jobs;
    const status = jobStatus(answer.status, answer.completed_at != null);
    for (const [name, value] of Object.entries({ ...answer, status, raw_status: answer.status })) {
      // A field of a newer API must not replace a method.
      if (!(name in Job.prototype)) Object.assign(this, { [name]: value });
    }
  }

  /** Whether the job has completed or failed. A final job never changes. */
  get isFinal(): boolean {
    return isFinal(this.status);
  }

  /** Reads the current state of the job. */
  async refresh(options?: RequestOptions): Promise<Job> {
    return await this.#jobs.get(this.job_id, options);
  }

  /** Waits until the job has completed. Rejects with JobFailedError and WaitTimeoutError. */
  async wait(options?: WaitOptions): Promise<Job> {
    return await this.#jobs.wait(this.job_id, options);
  }

  /** Yields all changes of status and progress. Reconnects after interruptions. */
  events(options?: RequestOptions): AsyncGenerator<JobEvent, void, undefined> {
    return this.#jobs.events(this.job_id, options);
  }

  /** Returns the log as a string. With `follow`, yields the log's lines as they arrive. */
  logs(options: LogOptions & { follow: true }): AsyncGenerator<string, void, undefined>;
  logs(options?: LogOptions & { follow?: false }): Promise<string>;
  logs(options?: LogOptions): Promise<string> | AsyncGenerator<string, void, undefined>;
  logs(options?: LogOptions): Promise<string> | AsyncGenerator<string, void, undefined> {
    return this.#jobs.logs(this.job_id, options);
  }

  /**
   * Cancels the job.
   *
   * Rejects with ConflictError if the job has ended, or its result is already being recorded.
   */
  async cancel(options?: RequestOptions): Promise<Job> {
    return await this.#jobs.cancel(this.job_id, options);
  }

  /** Submits a new job with the same payload. */
  async retry(options?: CreateOptions): Promise<Job> {
    return await this.#jobs.retry(this.job_id, options);
  }

  /** The artifacts of the job. */
  async artifacts(options?: RequestOptions): Promise<Artifact[]> {
    return await this.#jobs.artifacts(this.job_id, options);
  }
}
