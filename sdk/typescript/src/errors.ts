import type { Job } from "./job.ts";
import type { Pipeline } from "./schema.ts";

/** Base of the rest; itself for what is wrong on this side, e.g. a missing key. */
export class ForgeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * There was no usable answer: connection, TLS, time-out, not JSON, 5xx after all retries.
 *
 * `status` and `code` are set where there was an answer, and where it was Forge's.
 */
export class ForgeHTTPError extends ForgeError {
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly request_id: string | undefined;

  constructor(
    message: string,
    answer: { status?: number; code?: string; request_id?: string | undefined } = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.status = answer.status;
    this.code = answer.code;
    this.request_id = answer.request_id;
  }
}

/** What the API says of a refusal. */
export interface Refusal {
  code: string;
  message: string;
  param?: string | undefined;
  request_id?: string | undefined;
  details?: Record<string, unknown> | undefined;
}

/** The API answered with an error. `code` is a stable word, `param` the field that is wrong. */
export class ForgeAPIError extends ForgeError {
  readonly status: number;
  readonly code: string;
  readonly param: string | undefined;
  readonly request_id: string | undefined;
  readonly details: Record<string, unknown>;
  /** What the API says, without code and status. */
  readonly reason: string;

  constructor(status: number, refusal: Refusal) {
    const request = refusal.request_id ? `, request ${refusal.request_id}` : "";
    super(`${refusal.code}: ${refusal.message} (HTTP ${status}${request})`);
    this.status = status;
    this.code = refusal.code;
    this.param = refusal.param;
    this.request_id = refusal.request_id;
    this.details = refusal.details ?? {};
    this.reason = refusal.message;
  }

  /** Of the class of its status. */
  static of(status: number, refusal: Refusal): ForgeAPIError {
    const Kind = BY_STATUS[status] ?? ForgeAPIError;
    return new Kind(status, refusal);
  }
}

/** 400: a field is wrong (`param`). */
export class BadRequestError extends ForgeAPIError {}
/** 401: of a proxy in between; Forge itself answers 403 to a wrong key. */
export class AuthenticationError extends ForgeAPIError {}
/** 402: the budget is used up; `details` has the numbers. */
export class PaymentRequiredError extends ForgeAPIError {}
/** 403: the key is wrong, or its scope doesn't cover this. */
export class PermissionDeniedError extends ForgeAPIError {}
/** 404: it never was, or is another tenant's. */
export class NotFoundError extends ForgeAPIError {}
/** 405. */
export class MethodNotAllowedError extends ForgeAPIError {}
/** 408: the request did not arrive in time, also when it was sent again. */
export class RequestTimeoutError extends ForgeAPIError {}
/** 409: not in the state that it is in; `code` says which. */
export class ConflictError extends ForgeAPIError {}
/** 410: the artifact was deleted. */
export class GoneError extends ForgeAPIError {}
/** 413. */
export class PayloadTooLargeError extends ForgeAPIError {}
/** 415. */
export class UnsupportedMediaTypeError extends ForgeAPIError {}
/** 416. */
export class RangeNotSatisfiableError extends ForgeAPIError {}
/** 422: e.g. an idempotency key that was used for another request. */
export class UnprocessableEntityError extends ForgeAPIError {}
/** 429, also after all retries. */
export class RateLimitError extends ForgeAPIError {}

const BY_STATUS: Record<number, typeof ForgeAPIError> = {
  400: BadRequestError,
  401: AuthenticationError,
  402: PaymentRequiredError,
  403: PermissionDeniedError,
  404: NotFoundError,
  405: MethodNotAllowedError,
  408: RequestTimeoutError,
  409: ConflictError,
  410: GoneError,
  413: PayloadTooLargeError,
  415: UnsupportedMediaTypeError,
  416: RangeNotSatisfiableError,
  422: UnprocessableEntityError,
  429: RateLimitError,
};

/** A job that was waited for has failed. The message is the worker's. */
export class JobFailedError extends ForgeError {
  readonly job: Job;

  constructor(job: Job) {
    super(job.error || `${job.job_id} has failed`);
    this.job = job;
  }
}

/** A pipeline that was waited for has failed, or was cancelled. */
export class PipelineFailedError extends ForgeError {
  readonly pipeline: Pipeline;

  constructor(pipeline: Pipeline) {
    super(pipeline.error || `${pipeline.pipeline_id} is ${pipeline.status}`);
    this.pipeline = pipeline;
  }
}

/** The time given to a wait is over. What was waited for goes on. */
export class WaitTimeoutError extends ForgeError {}
/** The bytes that arrived are not those that the manifest names. */
export class IntegrityError extends ForgeError {}
/** The path of a file that must not be written to, or read from, a disk. */
export class UnsafePathError extends ForgeError {}
