import type { Job } from "./job.ts";
import type { Pipeline } from "./schema.ts";

/** Base class. Thrown directly for errors of the caller, such as a missing key. */
export class ForgeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * No usable response: connection or TLS error, time-out, no JSON, or 5xx after all retries.
 *
 * `status` is set if there was a response, `code` if the response was from Forge.
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

/** The fields of an error response. */
export interface Refusal {
  code: string;
  message: string;
  param?: string | undefined;
  request_id?: string | undefined;
  details?: Record<string, unknown> | undefined;
}

/** The API returned an error. `code` is stable; `param` names the invalid field. */
export class ForgeAPIError extends ForgeError {
  readonly status: number;
  readonly code: string;
  readonly param: string | undefined;
  readonly request_id: string | undefined;
  readonly details: Record<string, unknown>;
  /** The API's message, without code and status. */
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

  /** Creates an error. Its class depends on `status`. */
  static of(status: number, refusal: Refusal): ForgeAPIError {
    const Kind = BY_STATUS[status] ?? ForgeAPIError;
    return new Kind(status, refusal);
  }
}

/** 400: a field is invalid (`param`). */
export class BadRequestError extends ForgeAPIError {}
/** 401: from a proxy. Forge itself returns 403 for an invalid key. */
export class AuthenticationError extends ForgeAPIError {}
/** 402: the budget is used up; `details` has the numbers. */
export class PaymentRequiredError extends ForgeAPIError {}
/** 403: the key is invalid, or its scope does not allow the request. */
export class PermissionDeniedError extends ForgeAPIError {}
/** 404: the object does not exist, or belongs to another tenant. */
export class NotFoundError extends ForgeAPIError {}
/** 405. */
export class MethodNotAllowedError extends ForgeAPIError {}
/** 408: the request did not arrive in time, even after retries. */
export class RequestTimeoutError extends ForgeAPIError {}
/** 409: not possible in the current state. `code` has the reason. */
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
/** 429, after all retries. */
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

/**
 * The awaited job has failed. The message is the job's error, which comes from the worker or from
 * Forge.
 */
export class JobFailedError extends ForgeError {
  readonly job: Job;

  constructor(job: Job) {
    super(job.error || `${job.job_id} has failed`);
    this.job = job;
  }
}

/** The awaited pipeline has failed, or was cancelled. */
export class PipelineFailedError extends ForgeError {
  readonly pipeline: Pipeline;

  constructor(pipeline: Pipeline) {
    super(pipeline.error || `${pipeline.pipeline_id} is ${pipeline.status}`);
    this.pipeline = pipeline;
  }
}

/** The wait has timed out. The job or pipeline continues. */
export class WaitTimeoutError extends ForgeError {}
/** The received bytes do not match the manifest. */
export class IntegrityError extends ForgeError {}
/** The path of a file is unsafe to read or write on a disk. */
export class UnsafePathError extends ForgeError {}
