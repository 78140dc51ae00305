/** Forge for TypeScript: `Forge`, its results and its errors. */
export { Forge } from "./client.ts";
export type { Pulled } from "./disk/disk.ts";
export {
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ForgeAPIError,
  ForgeError,
  ForgeHTTPError,
  GoneError,
  IntegrityError,
  JobFailedError,
  MethodNotAllowedError,
  NotFoundError,
  PayloadTooLargeError,
  PaymentRequiredError,
  PermissionDeniedError,
  PipelineFailedError,
  RangeNotSatisfiableError,
  RateLimitError,
  RequestTimeoutError,
  UnprocessableEntityError,
  UnsafePathError,
  UnsupportedMediaTypeError,
  WaitTimeoutError,
} from "./errors.ts";
export { Job, type JobFields, type JobRef, type LogOptions, type WaitOptions } from "./job.ts";
export type * from "./job-params.ts";
export type { JobEvent, JobStatus } from "./job-status.ts";
export { Listing, type ListOptions, type Page } from "./listing.ts";
export type { LogPart, LogRange } from "./log-range.ts";
export type { CreateOptions, Moment, RequestOptions, TimeSpan } from "./options.ts";
export type { OnProgress, Progress } from "./progress.ts";
export type { ArtifactFilters, CheckOptions, TransferOptions } from "./resources/artifacts.ts";
export type { BudgetAnswer, RecordFilters } from "./resources/billing.ts";
export type { UploadOptions } from "./resources/datasets.ts";
export type { DeploymentFilters } from "./resources/deployments.ts";
export type { JobFilters } from "./resources/jobs.ts";
export type {
  PipelineFilters,
  PipelineSubmission,
  PipelineWaitOptions,
} from "./resources/pipelines.ts";
export type {
  BootstrapPlan,
  Machine,
  RegisteredWorker,
  WorkerFilters,
} from "./resources/workers.ts";
export type {
  ApiKey,
  Artifact,
  Attempt,
  AuditEntry,
  BillingRecord,
  BillingSummary,
  DailyBilling,
  Dataset,
  Deployment,
  DeploymentDetail,
  DeploymentStats,
  Estimate,
  Fleet,
  Identity,
  JobCounts,
  JobMetrics,
  JobThroughput,
  Lineage,
  Manifest,
  NewApiKey,
  NewUser,
  Operations,
  Pipeline,
  PipelineEstimate,
  PipelineStep,
  RateCard,
  Rates,
  Resources,
  RetentionRules,
  StorageUsage,
  TablePreview,
  User,
  Worker,
  WorkerDetail,
  WorkerSamples,
} from "./schema.ts";
export type { ForgeOptions } from "./settings.ts";
export type { ServerSentEvent } from "./sse.ts";
export type { SubmissionParams } from "./submission.ts";
export type { TenantEvent, TenantEventOptions } from "./tenant-events.ts";
export type { DatasetSource } from "./upload.ts";
export type { FileCheck, ManifestFile, OnCheck, Verification } from "./verification.ts";
export { VERSION } from "./version.ts";
