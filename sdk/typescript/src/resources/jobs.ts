import { Deadline } from "../deadline.ts";
import { ForgeError, ForgeHTTPError, JobFailedError } from "../errors.ts";
import { follow, OUTAGE_MS, StreamState } from "../following.ts";
import {
  idOf,
  Job,
  type JobActions,
  type JobRef,
  type LogOptions,
  type WaitOptions,
} from "../job.ts";
import { jobEvent } from "../job-event.ts";
import { isFinal, type JobEvent } from "../job-status.ts";
import { entriesOf, type Listing, type ListOptions } from "../listing.ts";
import { LogLines } from "../log-lines.ts";
import { type LogPart, type LogRange, readLogRange } from "../log-range.ts";
import type { CreateOptions, Moment, OfUser, RequestOptions, TimeSpan } from "../options.ts";
import { pause } from "../pause.ts";
import { create, get, path, post } from "../request.ts";
import type {
  Artifact,
  Attempt,
  Job as JobAnswer,
  JobCounts,
  JobMetrics,
  JobThroughput,
} from "../schema.ts";
import { listen, WaitState } from "../waiting.ts";
import { Resource } from "./resource.ts";

export interface JobFilters extends ListOptions, OfUser {
  /** One of the API's six statuses. */
  status?: JobAnswer["status"] | readonly JobAnswer["status"][] | undefined;
  job_type?: JobAnswer["job_type"] | readonly JobAnswer["job_type"][] | undefined;
  tag?: string | readonly string[] | undefined;
  worker_id?: string | undefined;
  pipeline_id?: string | undefined;
  created_after?: Moment | undefined;
  created_before?: Moment | undefined;
  completed_after?: Moment | undefined;
  completed_before?: Moment | undefined;
  /** The name of the API key that submitted the job. */
  created_by?: string | undefined;
  error_code?: string | readonly string[] | undefined;
  /** The beginning of an id, or a part of a tag or the notes. */
  q?: string | undefined;
}

/** `client.jobs`. Parameters for a job's id also accept a job. */
export class Jobs extends Resource implements JobActions {
  /** Converts a job in a response to a `Job` that uses this client. */
  read(answer: JobAnswer): Job {
    if (typeof answer.job_id !== "string" || typeof answer.status !== "string") {
      throw new ForgeHTTPError("the response is not a job: it has no job_id or no status");
    }
    return new Job(this, answer);
  }

  /** Lists jobs, newest first. `limit`: maximum number in total. */
  list(filters: JobFilters = {}, options?: RequestOptions): Listing<Job> {
    const read = (entry: unknown): Job => this.read(entry as JobAnswer);
    return this.listing({ path: "/api/jobs", name: "jobs", query: filters, options, read });
  }

  /**
   * Counts jobs by status, type, pending reason and error.
   *
   * Counts unfinished jobs, and jobs that ended after `ended_after` (default: one day ago).
   */
  async counts(
    query: OfUser & { ended_after?: Moment | undefined } = {},
    options?: RequestOptions,
  ): Promise<JobCounts> {
    return await this.transport.json(get("/api/jobs/counts", query), options);
  }

  /** Reads how many jobs were submitted, ended and queued over time. Default: the last day. */
  async throughput(
    query: TimeSpan & OfUser & { job_type?: JobFilters["job_type"] } = {},
    options?: RequestOptions,
  ): Promise<JobThroughput> {
    return await this.transport.json(get("/api/jobs/throughput", query), options);
  }

  /** Reads the current state of the job. */
  async get(job: JobRef, options?: RequestOptions): Promise<Job> {
    return this.read(await this.transport.json(get(path`/api/jobs/${idOf(job)}`), options));
  }

  /**
   * Cancels the job. A job without a worker ends immediately, others after some seconds.
   *
   * Rejects with ConflictError if the job has ended, or its result is already being recorded.
   */
  async cancel(job: JobRef, options?: RequestOptions): Promise<Job> {
    const appliedCheck = {
      codes: ["job_already_finished"],
      path: path`/api/jobs/${idOf(job)}`,
      isOurs: (found: unknown) => (found as JobAnswer).error_code === "cancelled",
    };
    const request = { ...post(path`/api/jobs/${idOf(job)}/cancel`), appliedCheck };
    return this.read(await this.transport.json(request, options));
  }

  /** Submits a new job with the same payload. */
  async retry(job: JobRef, options?: CreateOptions): Promise<Job> {
    const request = create(path`/api/jobs/${idOf(job)}/retry`, {});
    return this.read(await this.transport.json(request, options));
  }

  /** Lists the attempts of the job. */
  async attempts(job: JobRef, options?: RequestOptions): Promise<Attempt[]> {
    return await this.#entries(path`/api/jobs/${idOf(job)}/attempts`, "attempts", options);
  }

  /** Lists the artifacts of the job. */
  async artifacts(job: JobRef, options?: RequestOptions): Promise<Artifact[]> {
    return await this.#entries(path`/api/jobs/${idOf(job)}/artifacts`, "artifacts", options);
  }

  /**
   * Waits until the job has completed. Rejects with JobFailedError and WaitTimeoutError.
   *
   * If events don't arrive, polls every `pollInterval` seconds. Retries during outages of up to
   * five minutes.
   */
  async wait(job: JobRef, options: WaitOptions = {}): Promise<Job> {
    const { pollInterval, timeout, onEvent, ...rest } = options;
    const request = get(path`/api/jobs/${idOf(job)}`);
    const deadline = new Deadline(idOf(job), pollInterval, timeout);
    const watch = new WaitState(`${request.path}/events`, deadline);
    const poll = (signal: AbortSignal): Promise<JobAnswer> => {
      const retryPolicy = this.transport.retryPolicy(rest, OUTAGE_MS);
      return this.transport.json(request, { ...rest, signal }, retryPolicy);
    };
    const events = (signal: AbortSignal) => listen(this.transport, watch, { ...rest, signal });
    for (;;) {
      const now = this.read(await deadline.poll(poll, rest.signal));
      if (now.status === "failed") throw new JobFailedError(now);
      if (now.status === "completed") return now;
      watch.begin(now);
      if (watch.listens) {
        for await (const event of deadline.listen(events, rest.signal)) onEvent?.(event);
      }
      await pause(watch.end(), rest.signal);
    }
  }

  /**
   * Yields past statuses, then changes of status and progress until the job's end.
   *
   * Reconnects after interruptions, without gaps.
   */
  async *events(
    job: JobRef,
    options: RequestOptions = {},
  ): AsyncGenerator<JobEvent, void, undefined> {
    const following = new StreamState(path`/api/jobs/${idOf(job)}/events`);
    for await (const sent of follow(this.transport, following, options)) {
      const event = jobEvent(sent);
      yield event;
      if (isFinal(event.status)) return;
    }
  }

  /**
   * Reads the log of one attempt, or only its last `tailBytes`. Default: the latest attempt.
   *
   * With `follow`, yields the log's lines as they arrive, until the log is complete. Without
   * `attempt`, continues with later attempts. Reconnects after interruptions.
   */
  logs(
    job: JobRef,
    options: LogOptions & { follow: true },
  ): AsyncGenerator<string, void, undefined>;
  logs(job: JobRef, options?: LogOptions & { follow?: false }): Promise<string>;
  logs(
    job: JobRef,
    options?: LogOptions,
  ): Promise<string> | AsyncGenerator<string, void, undefined>;
  logs(
    job: JobRef,
    options: LogOptions = {},
  ): Promise<string> | AsyncGenerator<string, void, undefined> {
    return options.follow ? this.#lines(job, options) : this.#log(job, options);
  }

  /**
   * Reads the job's metrics over time: its progress, and the numbers that it reports. A job reports
   * numbers by output lines that begin with `::forge`.
   */
  async metrics(
    job: JobRef,
    query: { attempt?: number | undefined; max_points?: number | undefined } = {},
    options?: RequestOptions,
  ): Promise<JobMetrics> {
    return await this.transport.json(get(path`/api/jobs/${idOf(job)}/metrics`, query), options);
  }

  /**
   * Reads bytes of the log from `start` (inclusive) to `end` (exclusive), or the last `tailBytes`.
   *
   * The result also has the log's total length. Beyond the log's end, `bytes` is empty.
   */
  async logRange(job: JobRef, part: LogPart = {}, options?: RequestOptions): Promise<LogRange> {
    return await readLogRange(this.transport, path`/api/jobs/${idOf(job)}/logs`, part, options);
  }

  async #entries<T>(address: string, name: string, options?: RequestOptions): Promise<T[]> {
    const answer = await this.transport.json<Record<string, unknown>>(get(address), options);
    return entriesOf(answer, name, address) as T[];
  }

  async #log(job: JobRef, { attempt, tailBytes, ...options }: LogOptions): Promise<string> {
    if (tailBytes !== undefined && !(tailBytes > 0)) {
      throw new ForgeError("tailBytes must be more than 0");
    }
    const range = tailBytes && { Range: `bytes=-${tailBytes}` };
    const request = get(path`/api/jobs/${idOf(job)}/logs`, { attempt });
    const headers = { Accept: "text/plain", ...range };
    return await this.transport.text({ ...request, headers }, options);
  }

  async *#lines(job: JobRef, { attempt, ...options }: LogOptions): AsyncGenerator<string> {
    const following = new StreamState(path`/api/jobs/${idOf(job)}/logs`, { follow: true, attempt });
    const lines = new LogLines();
    for await (const event of follow(this.transport, following, options)) {
      yield* lines.take(event);
      if (lines.isOver) break;
    }
    yield* lines.rest();
  }
}
