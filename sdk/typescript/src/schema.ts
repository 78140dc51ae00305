// Written by `npm run openapi -- --write` from docs/openapi.json: don't edit it here.
//
// A later server may add fields and values: sets of texts are open, and what is not named here is
// there all the same.

export interface Resources {
  /** how many; 0: none */
  gpu?: number;
  /** a word of the GPU's name, e.g. A100 */
  gpu_type?: string;
  /** of one GPU */
  memory_gb?: number;
  /** tags that the worker must carry */
  tags?: string[];
}

export interface Job {
  job_id: string;
  job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {});
  user_id: string;
  /** the name of the key that submitted it */
  created_by: string;
  /** in the field names of the specification's table */
  payload: Record<string, unknown>;
  status: "pending" | "provisioning_worker" | "assigned" | "running" | "completed" | "failed" | (string & {});
  /** times it was handed to a worker */
  attempts: number;
  worker_id: string | null;
  result: Record<string, unknown> | null;
  error: string | null;
  error_code: "job_error" | "worker_lost" | "timeout" | "cancelled" | "bootstrap_failed" | "artifact_conflict" | (string & {}) | null;
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
  artifacts_uri: string | null;
  /** lists the artifact's files; each is served below it. Null if they are only in a bucket of the worker's */
  artifacts_url: string | null;
  logs_uri: string | null;
  /** where this API answers with the log */
  logs_url: string;
  resources: Record<string, unknown>;
  params: Record<string, unknown>;
  notes: string | null;
  timeout_s: number;
  max_attempts: number;
  progress: number | null;
  priority: number;
  tags: string[];
  pipeline_id: string | null;
  /** the step of that pipeline */
  pipeline_step: string | null;
  /** of a job that Forge made to serve a deployment on another worker: which one */
  deployment_id: string | null;
  /** the job whose payload this one repeats */
  retried_from: string | null;
  /** why it waits, at most a second old; null when it does not, or was just submitted */
  pending_reason: PendingReason | null;
  cancel_requested_at: string | null;
  /** the name of the key that asked for it, or `pipeline`, `deployment` or `temporal`, which did in its place */
  cancelled_by: string | null;
  /** of its workflow in Temporal */
  workflow_id: string;
  /** where Temporal's UI shows it; null where the server knows none, and in the answer to its submission */
  workflow_url: string | null;
  /** of its billing record; of a live deployment so far; null: it has none */
  cost_usd: number | null;
  /** of an unfinished job, if its next attempt succeeds; null in the answer to its submission */
  estimated_cost_usd: number | null;
  /** what Forge itself could not write of it so far, and tries again; its operator can end the job */
  stuck: {
    activity: string;
    tries: number;
    since: string;
  } | null;
  warnings?: Warning[];
}

export interface PendingReason {
  code: "no_worker" | "no_worker_fits" | "no_worker_available" | "provisioning" | "over_share" | "workers_busy" | "between_attempts" | "scheduling" | (string & {});
  message: string;
  /** what the nearest worker lacks, where none fits */
  requirement: {
    /** of the job's resources */
    name: string;
    needed: string | number;
    available: string | number | null;
  } | null;
  /** 1 is next */
  queue_position: number | null;
}

export interface Warning {
  code: string;
  param: string;
  message: string;
}

export interface JobCounts {
  /** all unfinished jobs, and those that ended after `ended_after` */
  by_status: {
    pending: number;
    provisioning_worker: number;
    assigned: number;
    running: number;
    completed: number;
    failed: number;
  };
  /** the same for each job type */
  by_job_type: {
    generate: {
      pending: number;
      provisioning_worker: number;
      assigned: number;
      running: number;
      completed: number;
      failed: number;
    };
    audit: {
      pending: number;
      provisioning_worker: number;
      assigned: number;
      running: number;
      completed: number;
      failed: number;
    };
    distill: {
      pending: number;
      provisioning_worker: number;
      assigned: number;
      running: number;
      completed: number;
      failed: number;
    };
    train: {
      pending: number;
      provisioning_worker: number;
      assigned: number;
      running: number;
      completed: number;
      failed: number;
    };
    evaluate: {
      pending: number;
      provisioning_worker: number;
      assigned: number;
      running: number;
      completed: number;
      failed: number;
    };
    deploy: {
      pending: number;
      provisioning_worker: number;
      assigned: number;
      running: number;
      completed: number;
      failed: number;
    };
  };
  /** jobs that wait for a worker by the code of `pending_reason`; of jobs with the same requirements the first one's. `other`: beyond 500 different requirements */
  by_pending_code: Record<string, number>;
  /** jobs that failed after `ended_after` */
  by_error_code: Record<string, number>;
  ended_after: string;
}

export interface JobThroughput {
  since: string;
  until: string;
  bucket_s: number;
  /** oldest first; those of no jobs too */
  buckets: Array<{
    /** where the bucket begins */
    at: string;
    submitted: number;
    /** handed to a worker for the first time */
    started: number;
    completed: number;
    failed: number;
    /** at the bucket's end: submitted and not started yet */
    waiting: number;
    /** at the bucket's end: started and not ended yet */
    running: number;
  }>;
}

export interface Attempt {
  attempt: number;
  worker_id: string | null;
  queued_at: string;
  assigned_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  outcome: "completed" | "failed" | "worker_lost" | "timeout" | "cancelled" | (string & {}) | null;
  error: string | null;
  /** what its worker says that it used; `gpu_hours` is null where it says nothing */
  usage: Record<string, number | null> | null;
  /** from its hand-out to its end, times its worker's GPUs: the most that is billed */
  gpu_hours_measured: number | null;
}

export interface Artifact {
  artifact_id: string;
  artifact_type: "dataset" | "checkpoint" | "eval" | "deployment" | (string & {});
  /** raw_dataset, scored_dataset, distilled_dataset, checkpoint, … */
  kind: string;
  /** of an uploaded dataset */
  name: string | null;
  /** the name of the key that made it */
  created_by: string;
  uri: string;
  created_at: string;
  source_jobs: string[];
  source_artifacts: string[];
  size_bytes: number | null;
  /** the entry stays when the bytes are gone */
  deleted_at: string | null;
  manifest: Manifest;
}

/** what the artifact is, and where it came from */
export type Manifest = DatasetManifest | CheckpointManifest | EvalManifest | DeploymentManifest;

export interface DatasetManifest {
  artifact_type: "dataset";
  schema_version: "1.0";
  artifact_id: string;
  /** raw_dataset, scored_dataset, distilled_dataset, checkpoint, … */
  kind: string;
  /** when the winning attempt ended */
  created_at: string;
  /** the name of the key that submitted the job */
  created_by: string;
  user_id: string;
  source_jobs: string[];
  /** artifacts of this tenant that it was made from */
  source_artifacts: string[];
  job_params: Record<string, unknown>;
  base_model: string | null;
  dataset_used: string | null;
  git_commit: string | null;
  metrics: Record<string, number>;
  /** of the job; its billing record has the details */
  cost_estimate_usd: number;
  notes: string;
  /** none: it was uploaded */
  job_id?: string;
  /** the one that won */
  attempt?: number;
  worker_id?: string;
  /** none: its job was submitted by itself */
  pipeline?: {
    pipeline_id: string;
    step: string;
    /** steps that it stands on which took an earlier job's artifact for their own */
    reused: Array<{
      step: string;
      job_id: string;
      artifact_id: string;
    }>;
  };
  files: ArtifactFile[];
  /** false: the service could not see its files, or not read one that should be a table; see measured */
  verified: boolean;
  /** fields that the service measured itself */
  measured: string[];
  contradictions: Array<{
    field: string;
    /** what the worker said */
    claimed: unknown;
    /** what the service found; null where it can only not be so */
    measured: unknown;
  }>;
  num_rows: number | null;
  schema: {
    columns: Array<{
      name: string;
      dtype: string;
    }>;
  };
  quality: {
    clarity_mean?: number;
    correctness_mean?: number;
    educational_mean?: number;
    quality_tier?: string;
    [field: string]: unknown;
  };
}

/** a file of an artifact */
export interface ArtifactFile {
  /** below the artifact's folder */
  path: string;
  size_bytes: number;
  sha256: string;
}

export interface CheckpointManifest {
  artifact_type: "checkpoint";
  schema_version: "1.0";
  artifact_id: string;
  /** raw_dataset, scored_dataset, distilled_dataset, checkpoint, … */
  kind: string;
  /** when the winning attempt ended */
  created_at: string;
  /** the name of the key that submitted the job */
  created_by: string;
  user_id: string;
  source_jobs: string[];
  /** artifacts of this tenant that it was made from */
  source_artifacts: string[];
  job_params: Record<string, unknown>;
  base_model: string | null;
  dataset_used: string | null;
  git_commit: string | null;
  metrics: Record<string, number>;
  /** of the job; its billing record has the details */
  cost_estimate_usd: number;
  notes: string;
  /** none: it was uploaded */
  job_id?: string;
  /** the one that won */
  attempt?: number;
  worker_id?: string;
  /** none: its job was submitted by itself */
  pipeline?: {
    pipeline_id: string;
    step: string;
    /** steps that it stands on which took an earlier job's artifact for their own */
    reused: Array<{
      step: string;
      job_id: string;
      artifact_id: string;
    }>;
  };
  files: ArtifactFile[];
  /** false: the service could not see its files, or not read one that should be a table; see measured */
  verified: boolean;
  /** fields that the service measured itself */
  measured: string[];
  contradictions: Array<{
    field: string;
    /** what the worker said */
    claimed: unknown;
    /** what the service found; null where it can only not be so */
    measured: unknown;
  }>;
  parameter_count: number | null;
  architecture: string | null;
  /** ids of datasets */
  training_data: string[];
  training_steps: number | null;
  training_epochs: number | null;
  optimizer: string | null;
  lr: number | null;
}

export interface EvalManifest {
  artifact_type: "eval";
  schema_version: "1.0";
  artifact_id: string;
  /** raw_dataset, scored_dataset, distilled_dataset, checkpoint, … */
  kind: string;
  /** when the winning attempt ended */
  created_at: string;
  /** the name of the key that submitted the job */
  created_by: string;
  user_id: string;
  source_jobs: string[];
  /** artifacts of this tenant that it was made from */
  source_artifacts: string[];
  job_params: Record<string, unknown>;
  base_model: string | null;
  dataset_used: string | null;
  git_commit: string | null;
  metrics: Record<string, number>;
  /** of the job; its billing record has the details */
  cost_estimate_usd: number;
  notes: string;
  /** none: it was uploaded */
  job_id?: string;
  /** the one that won */
  attempt?: number;
  worker_id?: string;
  /** none: its job was submitted by itself */
  pipeline?: {
    pipeline_id: string;
    step: string;
    /** steps that it stands on which took an earlier job's artifact for their own */
    reused: Array<{
      step: string;
      job_id: string;
      artifact_id: string;
    }>;
  };
  files: ArtifactFile[];
  /** false: the service could not see its files, or not read one that should be a table; see measured */
  verified: boolean;
  /** fields that the service measured itself */
  measured: string[];
  contradictions: Array<{
    field: string;
    /** what the worker said */
    claimed: unknown;
    /** what the service found; null where it can only not be so */
    measured: unknown;
  }>;
  eval_id: string;
  checkpoint_id: string | null;
  /** of its checkpoint, where that is registered */
  training_steps?: number | null;
  datasets: string[];
  scores: {
    overall?: number;
    helpfulness?: number;
    correctness?: number;
    style?: number;
    [field: string]: unknown;
  };
}

export interface DeploymentManifest {
  artifact_type: "deployment";
  schema_version: "1.0";
  artifact_id: string;
  /** raw_dataset, scored_dataset, distilled_dataset, checkpoint, … */
  kind: string;
  /** when the winning attempt ended */
  created_at: string;
  /** the name of the key that submitted the job */
  created_by: string;
  user_id: string;
  source_jobs: string[];
  /** artifacts of this tenant that it was made from */
  source_artifacts: string[];
  job_params: Record<string, unknown>;
  base_model: string | null;
  dataset_used: string | null;
  git_commit: string | null;
  metrics: Record<string, number>;
  /** of the job; its billing record has the details */
  cost_estimate_usd: number;
  notes: string;
  /** none: it was uploaded */
  job_id?: string;
  /** the one that won */
  attempt?: number;
  worker_id?: string;
  /** none: its job was submitted by itself */
  pipeline?: {
    pipeline_id: string;
    step: string;
    /** steps that it stands on which took an earlier job's artifact for their own */
    reused: Array<{
      step: string;
      job_id: string;
      artifact_id: string;
    }>;
  };
  files: ArtifactFile[];
  /** false: the service could not see its files, or not read one that should be a table; see measured */
  verified: boolean;
  /** fields that the service measured itself */
  measured: string[];
  contradictions: Array<{
    field: string;
    /** what the worker said */
    claimed: unknown;
    /** what the service found; null where it can only not be so */
    measured: unknown;
  }>;
  deployment_id: string;
  checkpoint_id: string | null;
  /** of its checkpoint, where that is registered */
  training_steps?: number | null;
  /** of a stopped one, the last */
  inference_url: string | null;
  /** active or stopped */
  status: string;
  scaling: {
    min_replicas: number;
    max_replicas: number;
  };
}

export interface JobMetrics {
  job_id: string;
  attempt: number;
  /** oldest first */
  at: string[];
  /** by name, a value for each of `at`; null where it was not reported */
  series: Record<string, Array<number | null>>;
}

export interface PipelineStepSubmission {
  name: string;
  job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {});
  /** values may be references: "${steps.<name>.result.<field>}" */
  payload?: Record<string, unknown>;
  /** beside those that it refers to */
  needs?: string[];
  /** its "${chosen.result.<field>}" are the best step's */
  choose?: ChoiceSubmission;
  /** if it fails, what depends on it is left out and the pipeline goes on */
  optional?: boolean;
  /** what the job needs of its worker */
  resources?: Resources;
  /** higher goes first */
  priority?: number;
  /** labels to find the job by */
  tags?: string[];
  /** handed to the worker as it is, e.g. the learning rate */
  params?: Record<string, unknown>;
  /** for those who read the job later */
  notes?: string;
  /** longest an attempt may run, in seconds */
  timeout_s?: number;
  /** how often the job is tried, if its worker fails or is lost */
  max_attempts?: number;
}

/** the best of several steps */
export interface ChoiceSubmission {
  /** the steps to choose from */
  from: string[];
  /** what they are compared by, e.g. scores.overall */
  by: string;
  order?: "highest" | "lowest" | (string & {});
  /** only steps of which this holds are chosen from */
  where?: string;
}

export interface Pipeline {
  pipeline_id: string;
  user_id: string;
  /** the name of the key that submitted it */
  created_by: string;
  name: string | null;
  template: string | null;
  status: "running" | "waiting_approval" | "completed" | "failed" | "cancelled" | (string & {});
  /** 1, and one more with each resume */
  run: number;
  error: string | null;
  error_code: string | null;
  tags: string[];
  reuse: boolean;
  budget_usd: number | null;
  /** by what its jobs have cost; null: it has no budget */
  budget_state: "ok" | "warning" | "exhausted" | (string & {}) | null;
  /** of all its jobs, in all its runs */
  cost_usd: number;
  /** spent, and what its steps that are left will cost; null: not known of some type */
  estimated_cost_usd?: number | null;
  expected_remaining_s?: number | null;
  created_at: string;
  completed_at: string | null;
  cancel_requested_at: string | null;
  steps: PipelineStep[];
  /** what was submitted, as it was understood */
  definition?: {
    steps: Array<{
      name: string;
      job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {});
      /** references in their places */
      payload: Record<string, unknown>;
      options: Record<string, unknown>;
      needs: string[];
      optional: boolean;
      choose: Choice | null;
    }>;
  };
}

export interface PipelineStep {
  name: string;
  job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {});
  status: "pending" | "waiting_approval" | "running" | "completed" | "failed" | "skipped" | "cancelled" | (string & {});
  job_id: string | null;
  job_status: "pending" | "provisioning_worker" | "assigned" | "running" | "completed" | "failed" | (string & {}) | null;
  progress: number | null;
  attempts: number | null;
  worker_id: string | null;
  needs: string[];
  optional: boolean;
  /** when it was begun; its job may wait after that */
  started_at: string | null;
  /** when it ended, however it did */
  completed_at: string | null;
  /** null before its job is billed; a reused step costs nothing */
  cost_usd: number | null;
  /** what jobs of its type cost lately: the median */
  estimated_cost_usd?: number | null;
  /** the same of their durations */
  expected_duration_s?: number | null;
  /** an earlier job's artifact was taken for its own */
  reused: boolean;
  gate?: {
    condition: string;
    /** null before its step has completed */
    passed: boolean | null;
    /** what the condition speaks of; null: it was not in the result */
    values: Record<string, unknown>;
    /** why it could not be told */
    error?: string;
  };
  approval?: {
    /** null: nobody has said anything yet */
    approved: boolean | null;
    /** the name of a key, or temporal */
    by: string | null;
    at: string | null;
    note: string | null;
  };
  /** which step was the best, and its number */
  chosen?: {
    step: string;
    by: string;
    value: number;
  } | null;
  error: string | null;
  error_code: string | null;
}

/** the best of several steps */
export interface Choice {
  /** the steps to choose from */
  from: string[];
  /** what they are compared by, e.g. scores.overall */
  by: string;
  order: "highest" | "lowest" | (string & {});
  /** only steps of which this holds are chosen from */
  where?: string;
}

export interface PipelineEstimate {
  currency: "USD";
  expected_usd: number;
  low_usd: number;
  high_usd: number;
  /** along the longest way through the steps, without waiting for workers and people; null: of some type there is no job yet to go by */
  duration_s: number | null;
  steps: Array<{
    name: string;
    job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {});
    expected_usd: number;
    low_usd: number;
    high_usd: number;
    /** as of a job's estimate */
    basis: "payload" | "history" | "prior" | (string & {});
    samples: number;
  }>;
  rate_card: string;
  rate_card_version: number;
}

export interface DownloadTicket {
  /** a path of this API, with the ticket: GET it without a key */
  url: string;
  expires_at: string;
  path: string;
  size_bytes: number;
}

export interface TablePreview {
  artifact_id: string;
  path: string;
  num_rows: number;
  columns: ColumnStatistics[];
  /** the first 50, by column. Integers beyond 2^53 are strings, NaN and infinities null, binary values {"bytes": n}; longer texts end after 2,000 characters with "… [cut]" */
  rows: Array<Record<string, unknown>>;
  /** true: rows were left out, for the answer would be over 1 MiB */
  truncated: boolean;
}

export interface ColumnStatistics {
  name: string;
  /** as in a manifest's schema: int64, double, string, bool, list, … */
  dtype: string;
  null_count: number;
  /** of what is ordered; of a text the first 256 characters, or 16 in very wide tables */
  min: string | number | boolean | null;
  /** of what is ordered; of a text the first 256 characters, or 16 in very wide tables */
  max: string | number | boolean | null;
  /** of the finite numbers; of a bool, the share of true */
  mean: number | null;
  /** of the finite numbers, as a sample */
  stddev: number | null;
  /** an estimate over all rows (HyperLogLog), often some 10 % off and up to 25 % */
  approx_distinct: number | null;
  /** of strings, in characters */
  min_length?: number | null;
  /** of strings, in characters */
  max_length?: number | null;
  /** of strings, in characters */
  mean_length?: number | null;
}

export interface Lineage {
  artifact_id: string;
  nodes: LineageNode[];
  edges: LineageEdge[];
  /** true: over 1000 artifacts on one side */
  truncated: boolean;
}

export interface LineageNode {
  id: string;
  type: "artifact" | "job" | "pipeline" | "external" | (string & {});
  /** of an artifact; of a job, its type */
  kind?: string;
  name?: string;
  /** of a job */
  status?: string;
  created_at?: string;
  deleted_at?: string;
}

export interface LineageEdge {
  from: string;
  to: string;
  relation: "input" | "output" | "step" | (string & {});
}

export interface StorageUsage {
  user_id: string;
  period: string;
  artifacts: number;
  /** stored now */
  total_bytes: number;
  /** over the period, to now: 10^9 bytes times months */
  gb_months: number;
  by_kind: Record<string, {
    artifacts: number;
    bytes: number;
    gb_months: number;
  }>;
}

export interface RetentionRules {
  rules: Array<{
    kind: "raw_dataset" | "scored_dataset" | "distilled_dataset" | "checkpoint" | "evaluation_report" | (string & {});
    /** from its creation on */
    keep_days: number;
  }>;
}

export interface Dataset {
  artifact_id: string;
  artifact_type: "dataset" | "checkpoint" | "eval" | "deployment" | (string & {});
  /** raw_dataset, scored_dataset, distilled_dataset, checkpoint, … */
  kind: string;
  /** of an uploaded dataset */
  name: string | null;
  /** the name of the key that made it */
  created_by: string;
  uri: string;
  created_at: string;
  source_jobs: string[];
  source_artifacts: string[];
  size_bytes: number | null;
  /** the entry stays when the bytes are gone */
  deleted_at: string | null;
  manifest: Manifest;
  dataset_id: string;
  dataset_uri: string;
  num_rows: number;
  schema: {
    columns: Array<{
      name: string;
      dtype: string;
    }>;
  };
}

export interface Deployment {
  deployment_id: string;
  user_id: string;
  status: "active" | "stopping" | "stopped" | (string & {});
  checkpoint_id: string | null;
  /** the job that deployed it; its billing record is the deployment's */
  job_id: string;
  /** where it answers, wherever it runs: send requests below it */
  url: string;
  /** where it runs right now */
  inference_url: string | null;
  scaling: {
    min_replicas: number;
    max_replicas: number;
  };
  /** its servers, and the one that is being made */
  replicas: Array<{
    worker_id: string | null;
    state: "starting" | "serving" | "stopping" | "ended" | (string & {});
    healthy: boolean;
    inference_url: string | null;
    since: string;
  }>;
  /** why it has fewer servers than it should */
  trouble: string | null;
  /** since then it is billed */
  created_at: string;
  /** until then it is billed */
  stop_requested_at: string | null;
  stopped_at: string | null;
  stopped_by: string | null;
  /** so far */
  cost_usd: number;
}

export interface DeploymentDetail {
  deployment_id: string;
  user_id: string;
  status: "active" | "stopping" | "stopped" | (string & {});
  checkpoint_id: string | null;
  /** the job that deployed it; its billing record is the deployment's */
  job_id: string;
  /** where it answers, wherever it runs: send requests below it */
  url: string;
  /** where it runs right now */
  inference_url: string | null;
  scaling: {
    min_replicas: number;
    max_replicas: number;
  };
  /** its servers, and the one that is being made */
  replicas: Array<{
    worker_id: string | null;
    state: "starting" | "serving" | "stopping" | "ended" | (string & {});
    healthy: boolean;
    inference_url: string | null;
    since: string;
  }>;
  /** why it has fewer servers than it should */
  trouble: string | null;
  /** since then it is billed */
  created_at: string;
  /** until then it is billed */
  stop_requested_at: string | null;
  stopped_at: string | null;
  stopped_by: string | null;
  /** so far */
  cost_usd: number;
  /** all there ever were */
  placements: Array<{
    placement: number;
    /** the job that made it */
    job_id: string;
    worker_id: string | null;
    state: "starting" | "serving" | "stopping" | "ended" | (string & {});
    /** why it has ended */
    outcome: "worker_lost" | "missing" | "unhealthy" | "stopped" | "failed" | (string & {}) | null;
    inference_url: string | null;
    created_at: string;
    serving_at: string | null;
    ended_at: string | null;
  }>;
}

export interface DeploymentStats {
  deployment_id: string;
  since: string;
  until: string;
  bucket_s: number;
  total: {
    requests: number;
    /** that no server answered, or answered with 5xx, or whose answer broke off */
    errors: number;
    /** half of the requests took at most so long, to the answer's end */
    latency_p50_s: number | null;
    /** at most a tenth off */
    latency_p99_s: number | null;
    /** as answers say; null: none said */
    input_tokens: number | null;
    output_tokens: number | null;
  };
  /** oldest first; those without requests are left out */
  buckets: Array<{
    /** where the bucket begins */
    at: string;
    requests: number;
    /** that no server answered, or answered with 5xx, or whose answer broke off */
    errors: number;
    /** half of the requests took at most so long, to the answer's end */
    latency_p50_s: number | null;
    /** at most a tenth off */
    latency_p99_s: number | null;
    /** as answers say; null: none said */
    input_tokens: number | null;
    output_tokens: number | null;
  }>;
}

export interface BillingSummary {
  user_id: string;
  /** YYYY-MM, UTC */
  period: string;
  /** of all records, live deployments so far among them, as far as this month bears them */
  total_cost_usd: number;
  by_job_type: Record<string, number>;
  /** the 100 dearest; a job counts under each of its tags */
  by_tag: Record<string, number>;
  /** by pipeline_id, the 100 dearest */
  by_pipeline: Record<string, number>;
  records: number;
  /** billed */
  gpu_hours_total: number;
  /** input and output, billed */
  tokens_total: number;
  /** of attempts that failed, were cancelled or lost, as far as they are not billed */
  unbilled_gpu_hours: number;
  /** the part of it that still grows: what live deployments have come to in this month */
  accruing_usd: number;
  storage: {
    gb_months: number;
    amount_usd: number;
  };
  estimated_invoice: {
    currency: "USD";
    lines: Array<{
      /** `accruing`: live deployments so far; `storage`: where the card has a price for it */
      kind: "jobs" | "accruing" | "storage" | (string & {});
      job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {}) | null;
      description: string;
      amount_usd: number;
    }>;
    total_usd: number;
  };
  /** the invoice at the month's end, if all goes on as it does; of a past month what it is */
  forecast_usd: number;
  /** of the month that is now, whichever is asked for */
  budget: Budget | null;
  /** by which a job submitted now is billed */
  rate_card: string;
}

export interface Budget {
  /** at which submissions are refused with 402; null: none */
  cap_usd: number | null;
  /** from which on submissions are answered with a warning */
  warning_usd: number | null;
  state: "ok" | "warning" | "exhausted" | (string & {});
  /** this month: billed, accrued and stored so far */
  spent_usd: number;
  /** what is under way is expected to add this month */
  committed_usd: number;
  remaining_usd: number | null;
}

export interface DailyBilling {
  user_id: string;
  /** YYYY-MM, UTC */
  period: string;
  /** as in the month's summary */
  total_cost_usd: number;
  /** each day of the month up to today, and others that bear something */
  days: Array<{
    /** YYYY-MM-DD, UTC */
    day: string;
    by_job_type: Record<string, number>;
    total_cost_usd: number;
  }>;
}

export interface BillingRecord {
  job_id: string;
  user_id: string;
  job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {});
  /** sums over the attempts that are billed; then, each where it is known, what was done */
  metrics: {
    gpu_hours: number;
    gpu_hours_measured: number;
    tokens_generated: number;
    input_tokens: number;
    output_tokens: number;
    rows_processed: number;
    samples_evaluated: number;
    deployment_lifetime_days: number;
    stored_gb: number;
    /** `input_tokens` and `output_tokens` */
    tokens_used?: number;
    /** of the last attempt: as its worker says, else from its hand-out to its end */
    duration_sec?: number;
    /** generate, distill */
    teacher_model?: string;
    /** distill; as counted, where its table could be read */
    num_pairs?: number;
    /** train */
    gpu_type?: string;
    /** train */
    num_steps?: number;
    /** train: rows */
    dataset_size?: number;
  };
  /** USD */
  unit_costs: Record<string, number>;
  /** USD */
  cost_breakdown: Record<string, number>;
  total_cost_usd: number;
  state: "accruing" | "final" | (string & {});
  /** the name of the card it was computed with */
  rate_card: string;
  rate_card_version: number;
  /** how the total came about, with the numbers */
  formula: string;
  /** `gpu_hours_over_measured`: the worker reported more than was measured, which is billed; `gpu_hours_not_reported`: what was measured is billed; `rows_not_reported`, `samples_not_reported`: what the control plane counted is billed; `usage_over_plausible`: tokens, rows or samples are billed up to what the job's payload, dataset and time make plausible */
  flags: string[];
  attempts: Array<{
    attempt: number;
    outcome: "completed" | "failed" | "worker_lost" | "timeout" | "cancelled" | (string & {});
    worker_id: string | null;
    billed: boolean;
    /** as billed, or as it would be */
    gpu_hours: number;
    gpu_hours_measured: number;
    gpu_hours_reported: number | null;
    /** `gpu_hours_over_measured`: the worker reported more than was measured, which is billed; `gpu_hours_not_reported`: what was measured is billed; `rows_not_reported`, `samples_not_reported`: what the control plane counted is billed; `usage_over_plausible`: tokens, rows or samples are billed up to what the job's payload, dataset and time make plausible */
    flags: string[];
    /** numbers that were cut, as the worker told them */
    reported?: Record<string, number>;
  }>;
  created_at: string;
}

export interface Rates {
  rate_card: string;
  version: number;
  currency: "USD";
  /** `work`: by what a job of each type makes; `metered`: by what any job uses */
  basis: "work" | "metered" | (string & {});
  /** by a word of the GPU's name; `default` for any other */
  gpu_hour: Record<string, number>;
  /** USD; 0 where the card has no such price */
  generation_per_1m_tokens: number;
  /** USD; 0 where the card has no such price */
  distill_per_1m_tokens: number;
  /** USD; 0 where the card has no such price */
  audit_per_1k_rows: number;
  /** USD; 0 where the card has no such price */
  eval_per_100_samples: number;
  /** of 30 days */
  deploy_per_month: number;
  /** USD; 0 where the card has no such price */
  input_per_1m_tokens: number;
  /** USD; 0 where the card has no such price */
  output_per_1m_tokens: number;
  /** USD; 0 where the card has no such price */
  storage_per_gb_month: number;
}

export interface Estimate {
  job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {});
  currency: "USD";
  expected_usd: number;
  low_usd: number;
  high_usd: number;
  /** `payload`: computed from it; `history`: from your jobs of this type, one in ten below `low_usd` and one in ten above `high_usd`; `prior`: from a rule of thumb, as there are none yet */
  basis: "payload" | "history" | "prior" | (string & {});
  /** jobs that it stands on */
  samples: number;
  /** of the expected cost */
  formula: string;
  rate_card: string;
  rate_card_version: number;
}

export interface RateCard {
  name: string;
  version: number;
  effective_from: string;
  prices: {
    basis: "work";
    /** per GPU hour, by a word of the GPU's name; `default` for any other */
    gpuHour: Record<string, string>;
    /** USD, as decimal text */
    generationPer1mTokens: string;
    /** without it distillation costs what generation does */
    distillPer1mTokens?: string;
    /** USD, as decimal text */
    auditPer1kRows: string;
    /** USD, as decimal text */
    evalPer100Samples: string;
    /** USD, as decimal text */
    deployPerMonth: string;
  } | {
    basis: "metered";
    /** per GPU hour, by a word of the GPU's name; `default` for any other */
    gpuHour: Record<string, string>;
    /** USD, as decimal text */
    inputPer1mTokens: string;
    /** USD, as decimal text */
    outputPer1mTokens: string;
    /** USD, as decimal text */
    storagePerGbMonth: string;
    /** USD, as decimal text */
    deployPerMonth: string;
  };
  created_by: string;
  created_at: string;
}

export interface AuditEntry {
  entry_id: number;
  at: string;
  /** whom it concerns; null: everybody */
  user_id: string | null;
  action: string;
  /** what it was done to */
  subject: string;
  /** the name of the key that did it */
  created_by: string;
  scope: string;
  before: unknown;
  after: unknown;
  /** of this entry and the one before: forge-server audit verify */
  hash: string;
}

export interface Identity {
  ok: true;
  user_id: string;
  /** the tenant's name, as people know it */
  user_name: string;
  key_id: string;
  /** `created_by` of what is made with this key */
  key_name: string;
  scope: "user" | "worker" | "admin" | (string & {});
  expires_at: string | null;
  /** a key was exchanged for it */
  is_session: boolean;
  /** what this server can do, for clients that offer it */
  features: {
    /** where workflows are shown; null: not configured, or not for this key */
    temporal_ui_url: string | null;
    /** machines can be set up as workers over SSH */
    ssh_workers: boolean;
    budgets: boolean;
    billing_export: boolean;
  };
}

export interface NewApiKey {
  key_id: string;
  name: string;
  scope: "user" | "worker" | "admin" | (string & {});
  last4: string;
  created_at: string;
  expires_at: string | null;
  /** to the minute */
  last_used_at: string | null;
  revoked_at: string | null;
  /** how many workers a worker key is for; null: any */
  workers: number | null;
  /** where else their models may be served from */
  serving_hosts: string[];
  /** the id of the key that made it, which takes it along when it is revoked */
  made_by: string | null;
  /** of a session: the id of the key that was exchanged for it */
  session_of: string | null;
  /** its text, shown here only */
  key: string | null;
}

export interface ApiKey {
  key_id: string;
  name: string;
  scope: "user" | "worker" | "admin" | (string & {});
  last4: string;
  created_at: string;
  expires_at: string | null;
  /** to the minute */
  last_used_at: string | null;
  revoked_at: string | null;
  /** how many workers a worker key is for; null: any */
  workers: number | null;
  /** where else their models may be served from */
  serving_hosts: string[];
  /** the id of the key that made it, which takes it along when it is revoked */
  made_by: string | null;
  /** of a session: the id of the key that was exchanged for it */
  session_of: string | null;
}

export interface Limit {
  name: string;
  /** null: none */
  limit: number | null;
  /** null: told by request_burst */
  used: number | null;
  /** the server's variable that sets it */
  variable: string;
}

export interface NewUser {
  user_id: string;
  name: string;
  /** who it is at the payment processor */
  payment_customer_id: string | null;
  created_at: string;
  /** the user's first key */
  api_key: NewApiKey;
}

export interface User {
  user_id: string;
  name: string;
  /** who it is at the payment processor */
  payment_customer_id: string | null;
  created_at: string;
}

export interface PaymentCustomer {
  payment_customer_id: string | null;
}

export interface Worker {
  worker_id: string;
  /** where it was set up over SSH; null of somebody else's */
  ssh_host: string | null;
  gpu_count: number;
  gpu_type: string;
  status: "bootstrapping" | "idle" | "busy" | "error" | "dead" | (string & {});
  status_reason: string | null;
  /** why it is in `error` */
  error_code: "reported" | "failing" | "unresponsive" | "bootstrap_failed" | (string & {}) | null;
  /** finishes its job and takes no other */
  draining: boolean;
  current_job_id: string | null;
  /** seconds since the epoch */
  last_heartbeat: number | null;
  gpu: {
    name: string;
    memory_gb: number;
  };
  tags: string[];
  /** the only ones it takes; null: all */
  job_types: string[] | null;
  version: string | null;
  /** percent */
  util: number | null;
  /** GB */
  mem_used: number | null;
  /** GB */
  mem_total: number | null;
  jobs_handled: number;
  /** serves every tenant */
  shared: boolean;
}

export interface WorkerDetail {
  worker_id: string;
  /** where it was set up over SSH; null of somebody else's */
  ssh_host: string | null;
  gpu_count: number;
  gpu_type: string;
  status: "bootstrapping" | "idle" | "busy" | "error" | "dead" | (string & {});
  status_reason: string | null;
  /** why it is in `error` */
  error_code: "reported" | "failing" | "unresponsive" | "bootstrap_failed" | (string & {}) | null;
  /** finishes its job and takes no other */
  draining: boolean;
  current_job_id: string | null;
  /** seconds since the epoch */
  last_heartbeat: number | null;
  gpu: {
    name: string;
    memory_gb: number;
  };
  tags: string[];
  /** the only ones it takes; null: all */
  job_types: string[] | null;
  version: string | null;
  /** percent */
  util: number | null;
  /** GB */
  mem_used: number | null;
  /** GB */
  mem_total: number | null;
  jobs_handled: number;
  /** serves every tenant */
  shared: boolean;
  /** null: it registered itself */
  bootstrap: Bootstrap | null;
}

export interface Bootstrap {
  ssh_port: number;
  ssh_user: string;
  ssh_key_path: string;
  /** the fingerprint that the host must show */
  ssh_host_key: string | null;
  provider: string | null;
  metadata: Record<string, unknown> | null;
  /** how often it was set up */
  run: number;
  steps: Array<{
    step: "connect" | "script" | "packages" | "repository" | "requirements" | "agent" | "ready" | (string & {});
    does: string;
    status: "pending" | "running" | "completed" | "failed" | (string & {});
    tries: number;
    started_at: string | null;
    ended_at: string | null;
    error: string | null;
    /** what the machine said, the last 64 KiB of it */
    log: string;
  }>;
}

export interface WorkerSamples {
  worker_id: string;
  since: string;
  until: string;
  bucket_s: number;
  /** oldest first; buckets without heartbeats are left out */
  samples: Array<{
    /** where the bucket begins */
    at: string;
    /** percent, mean */
    util: number | null;
    /** of its minutes' means the largest */
    util_max: number | null;
    /** GB, mean */
    mem_used: number | null;
    /** GB */
    mem_total: number | null;
  }>;
}

export interface Fleet {
  workers: number;
  by_status: {
    bootstrapping: number;
    idle: number;
    busy: number;
    error: number;
    dead: number;
  };
  /** among idle and busy ones */
  draining: number;
  gpus: number;
  busy_gpus: number;
  idle_gpus: number;
  /** most GPUs first; CPU workers among them */
  by_gpu_type: Array<{
    gpu_type: string;
    workers: number;
    gpus: number;
    /** of workers that run a job */
    busy_gpus: number;
    /** of workers that could take one */
    idle_gpus: number;
  }>;
  /** percent; mean of idle and busy workers that report it */
  util: number | null;
  /** GB, of these workers */
  mem_used: number | null;
  /** GB, of these workers */
  mem_total: number | null;
}

export type Command = {
  /** stop it, and report what it used */
  type: "cancel_job";
  job_id: string;
} | {
  /** the job is no longer this worker's: stop it */
  type: "job_lost";
  job_id: string;
  /** which one, if the worker told: it may have another by now */
  attempt?: number;
} | {
  /** end what it serves: nobody needs it any more */
  type: "stop_deployment";
  deployment_id: string;
} | {
  /** finish the job, and take no other */
  type: "drain";
};

export interface HandedJob {
  job_id: string;
  job_type: "generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {});
  /** the tenant */
  user_id: string;
  payload: Record<string, unknown>;
  params: Record<string, unknown>;
  attempt: number;
  timeout_s: number;
  /** ids for what this attempt makes */
  output_ids: Record<string, string>;
  inputs: JobInput[];
  uploads: {
    artifacts_uri: string | null;
    logs_uri: string;
    /** PUT below it: files of the artifact */
    artifacts_url: string;
    /** PUT below it: what a later attempt goes on from */
    checkpoints_url: string;
    /** PATCH: the log */
    log_url: string;
    log_max_bytes: number;
  };
  /** of a deploy job: its server must refuse requests without this bearer token */
  serving_token?: string;
  /** what an earlier attempt left to go on from */
  resume_from: {
    /** where the worker reads it: a path of this API, or an address */
    url: string;
    /** beside an address, which is good for a while: the path of this API */
    fallback_url?: string;
    size_bytes: number;
    sha256: string | null;
    name: string;
    /** the attempt that left it */
    attempt: number;
  } | null;
}

export interface JobInput {
  param: string;
  value: string;
  /** true: there is no such thing for this tenant */
  withheld?: boolean;
  /** why it is withheld */
  reason?: string;
  /** true: that may pass */
  retryable?: boolean;
  /** the bytes, where the control plane has them */
  files?: Array<{
    path: string;
    /** where the worker reads it: a path of this API, or an address */
    url: string;
    /** beside an address, which is good for a while: the path of this API */
    fallback_url?: string;
    size_bytes: number;
    sha256: string | null;
  }>;
  /** where else they are */
  uri?: string;
  /** of a deployment */
  inference_url?: string;
  /** what that is asked with, as a bearer token */
  inference_token?: string;
}

export interface ReceivedFile {
  path: string;
  /** bytes that are there; a part goes on from here */
  received: number;
  complete: boolean;
  /** of the whole file, once it is complete */
  sha256: string | null;
  /** PUT the whole file there, with these headers, then ask again: faster than by parts */
  upload?: {
    url: string;
    headers: Record<string, string>;
  };
}

/** Every refusal; as application/problem+json (RFC 9457) where the client accepts that */
export interface Error {
  error: {
    /** a stable word in snake_case */
    code: string;
    /** for people */
    message: string;
    /** the field, parameter or header that is wrong */
    param?: string;
    /** the same as in the header x-request-id */
    request_id: string;
    details?: Record<string, unknown>;
  };
}

/** What each operation takes and gives, where that is JSON. */
export interface Operations {
  generate: {
    body: {
      /** what is asked of the teacher, e.g. question answering */
      task: string;
      /** how many rows to write */
      size: number;
      /** the model that writes the answers */
      teacher: string;
      /** what the rows are about, e.g. law */
      domain?: string;
      /** how the rows are written, e.g. concise */
      style?: string;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    } | {
      /** what the rows are about, e.g. law */
      domain: string;
      /** how many rows to write */
      num_samples: number;
      /** what is asked of the teacher, e.g. question answering */
      task?: string;
      /** how the rows are written, e.g. concise */
      style?: string;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    };
    answer: Job;
  };
  audit: {
    body: {
      /** s3://, spaces:// or forge://, a bucket and a key; or file:// below the artifacts root */
      dataset_uri: string;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    };
    answer: Job;
  };
  distill: {
    body: {
      /** a dataset of yours, by its id */
      dataset_id: string;
      /** the model that writes the answers */
      teacher: string;
      /** the model that is to learn from the answers */
      student_model?: string;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    } | {
      /** s3://, spaces:// or forge://, a bucket and a key; or file:// below the artifacts root */
      dataset_uri: string;
      /** the model that writes the answers */
      teacher_model: string;
      /** the model that is to learn from the answers */
      student_model?: string;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    };
    answer: Job;
  };
  train: {
    body: {
      /** a dataset of yours, by its id */
      dataset_id: string;
      /** the model that is trained, e.g. llama-3-8b */
      model: string;
      /** how often the dataset is gone through */
      epochs?: number;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    } | {
      /** s3://, spaces:// or forge://, a bucket and a key; or file:// below the artifacts root */
      dataset_uri: string;
      /** the model that is trained, e.g. llama-3-8b */
      model_id: string;
      /** how often the dataset is gone through */
      epochs?: number;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    };
    answer: Job;
  };
  evaluate: {
    body: {
      /** a checkpoint of yours, by its id, or a model's name */
      checkpoint_id: string;
      /** what the checkpoint is scored by: a benchmark's name, or the id of a dataset */
      benchmark?: string;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    } | {
      /** a checkpoint of yours, by its id, or a model's name */
      model_id: string;
      /** what the checkpoint is scored by: a benchmark's name, or the id of a dataset */
      benchmark?: string;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    };
    answer: Job;
  };
  deploy: {
    body: {
      /** a checkpoint of yours, by its id, or a model's name */
      checkpoint_id: string;
      /** a tag that its worker must carry */
      region?: string;
      /** servers that are made in any case; 1 by default */
      min_replicas?: number;
      /** servers at most, while idle workers fit; 1 by default */
      max_replicas?: number;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    } | {
      /** a checkpoint of yours, by its id, or a model's name */
      model_id: string;
      /** a tag that its worker must carry */
      region?: string;
      /** servers that are made in any case; 1 by default */
      min_replicas?: number;
      /** servers at most, while idle workers fit; 1 by default */
      max_replicas?: number;
      /** what the job needs of its worker */
      resources?: Resources;
      /** higher goes first */
      priority?: number;
      /** labels to find the job by */
      tags?: string[];
      /** handed to the worker as it is, e.g. the learning rate */
      params?: Record<string, unknown>;
      /** for those who read the job later */
      notes?: string;
      /** longest an attempt may run, in seconds */
      timeout_s?: number;
      /** how often the job is tried, if its worker fails or is lost */
      max_attempts?: number;
    };
    answer: Job;
  };
  retryJob: {
    body: Record<string, unknown>;
    answer: Job;
  };
  countJobs: {
    query: {
      ended_after?: string;
      user_id?: string;
    };
    answer: JobCounts;
  };
  getJobThroughput: {
    query: {
      since?: string;
      until?: string;
      bucket_s?: number;
      job_type?: Array<"generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {})>;
      user_id?: string;
    };
    answer: JobThroughput;
  };
  listJobs: {
    query: {
      limit?: number;
      after?: string;
      status?: Array<"pending" | "provisioning_worker" | "assigned" | "running" | "completed" | "failed" | (string & {})>;
      job_type?: Array<"generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {})>;
      tag?: string[];
      worker_id?: string;
      pipeline_id?: string;
      created_after?: string;
      created_before?: string;
      completed_after?: string;
      completed_before?: string;
      created_by?: string;
      error_code?: Array<"job_error" | "worker_lost" | "timeout" | "cancelled" | "bootstrap_failed" | "artifact_conflict" | (string & {})>;
      q?: string;
      user_id?: string;
    };
    answer: {
      jobs: Job[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  getJob: {
    answer: Job;
  };
  listJobAttempts: {
    answer: {
      attempts: Attempt[];
    };
  };
  listJobArtifacts: {
    answer: {
      artifacts: Artifact[];
    };
  };
  cancelJob: {
    body: Record<string, unknown>;
    answer: Job;
  };
  getJobLog: {
    query: {
      attempt?: number;
      follow?: "true" | "false" | (string & {});
    };
  };
  getJobMetrics: {
    query: {
      attempt?: number;
      max_points?: number;
    };
    answer: JobMetrics;
  };
  createPipeline: {
    body: {
      template: "byo-data" | "synthetic" | (string & {});
      /** by step, what its submission would carry and no earlier step makes */
      params?: Record<string, Record<string, unknown>>;
      skip?: Array<"generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {})>;
      /** a training for each, with these fields over those of params.train; the best goes on */
      sweep?: Array<Record<string, unknown>>;
      /** what a sweep's best has most of */
      best_by?: string;
      name?: string;
      /** what must hold to go on */
      gates?: Array<{
        step: string;
        /** e.g. scores.overall >= 0.7 */
        condition: string;
      }>;
      /** steps that wait for somebody's approval before they begin */
      approvals?: string[];
      /** most that its jobs may cost */
      budget_usd?: number;
      /** take an earlier artifact where a step would make the same from the same */
      reuse?: boolean;
      tags?: string[];
    } | {
      steps: PipelineStepSubmission[];
      name?: string;
      /** what must hold to go on */
      gates?: Array<{
        step: string;
        /** e.g. scores.overall >= 0.7 */
        condition: string;
      }>;
      /** steps that wait for somebody's approval before they begin */
      approvals?: string[];
      /** most that its jobs may cost */
      budget_usd?: number;
      /** take an earlier artifact where a step would make the same from the same */
      reuse?: boolean;
      tags?: string[];
    };
    answer: Pipeline;
  };
  listPipelines: {
    query: {
      limit?: number;
      after?: string;
      status?: Array<"running" | "waiting_approval" | "completed" | "failed" | "cancelled" | (string & {})>;
      tag?: string[];
      q?: string;
      user_id?: string;
    };
    answer: {
      pipelines: Pipeline[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  estimatePipeline: {
    body: {
      template: "byo-data" | "synthetic" | (string & {});
      /** by step, what its submission would carry and no earlier step makes */
      params?: Record<string, Record<string, unknown>>;
      skip?: Array<"generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {})>;
      /** a training for each, with these fields over those of params.train; the best goes on */
      sweep?: Array<Record<string, unknown>>;
      /** what a sweep's best has most of */
      best_by?: string;
      name?: string;
      /** what must hold to go on */
      gates?: Array<{
        step: string;
        /** e.g. scores.overall >= 0.7 */
        condition: string;
      }>;
      /** steps that wait for somebody's approval before they begin */
      approvals?: string[];
      /** most that its jobs may cost */
      budget_usd?: number;
      /** take an earlier artifact where a step would make the same from the same */
      reuse?: boolean;
      tags?: string[];
    } | {
      steps: PipelineStepSubmission[];
      name?: string;
      /** what must hold to go on */
      gates?: Array<{
        step: string;
        /** e.g. scores.overall >= 0.7 */
        condition: string;
      }>;
      /** steps that wait for somebody's approval before they begin */
      approvals?: string[];
      /** most that its jobs may cost */
      budget_usd?: number;
      /** take an earlier artifact where a step would make the same from the same */
      reuse?: boolean;
      tags?: string[];
    };
    answer: PipelineEstimate;
  };
  setPipelineBudget: {
    body: {
      /** beyond which no step is begun; null: no bound */
      budget_usd: number | null;
      /** from which on `budget_state` warns; without it 80 % of the budget */
      warning_usd?: number | null;
    };
    answer: Pipeline;
  };
  getPipeline: {
    answer: Pipeline;
  };
  cancelPipeline: {
    body: Record<string, unknown>;
    answer: Pipeline;
  };
  approvePipelineStep: {
    body: {
      /** may be left out where one step waits */
      step?: string;
      /** false rejects it: the pipeline fails */
      approved?: boolean;
      note?: string;
    };
    answer: Pipeline;
  };
  resumePipeline: {
    body: {
      /** do this step and all after it again, completed or not */
      from?: string;
      /** in place of the one it had */
      budget_usd?: number;
      /** in place of theirs */
      gates?: Array<{
        step: string;
        /** e.g. scores.overall >= 0.7 */
        condition: string;
      }>;
    };
    answer: Pipeline;
  };
  listArtifacts: {
    query: {
      limit?: number;
      after?: string;
      type?: "dataset" | "checkpoint" | "eval" | "deployment" | (string & {});
      kind?: Array<"raw_dataset" | "scored_dataset" | "distilled_dataset" | "checkpoint" | "evaluation_report" | "deployment" | (string & {})>;
      job_id?: string;
      source?: string;
      name?: string;
      q?: string;
      created_after?: string;
      created_before?: string;
      deleted?: "true" | "false" | (string & {});
      user_id?: string;
    };
    answer: {
      artifacts: Artifact[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  getArtifact: {
    query: {
      user_id?: string;
    };
    answer: Artifact;
  };
  deleteArtifact: {
    query: {
      user_id?: string;
    };
    answer: Artifact;
  };
  getManifest: {
    query: {
      user_id?: string;
    };
    answer: Manifest;
  };
  listFiles: {
    query: {
      user_id?: string;
    };
    answer: {
      files: ArtifactFile[];
    };
  };
  getFile: {
    query: {
      signed?: "true" | "false" | (string & {});
      user_id?: string;
    };
  };
  getArchive: {
    query: {
      user_id?: string;
    };
  };
  createDownloadTicket: {
    query: {
      user_id?: string;
    };
    body: {
      /** as `files` has it */
      path: string;
    };
    answer: DownloadTicket;
  };
  downloadByTicket: {
    query: {
      ticket: string;
    };
  };
  previewArtifact: {
    query: {
      path?: string;
      user_id?: string;
    };
    answer: TablePreview;
  };
  getLineage: {
    query: {
      user_id?: string;
    };
    answer: Lineage;
  };
  getStorage: {
    query: {
      period?: string;
      user_id?: string;
    };
    answer: StorageUsage;
  };
  getRetention: {
    query: {
      user_id?: string;
    };
    answer: RetentionRules;
  };
  setRetention: {
    query: {
      user_id?: string;
    };
    body: {
      rules: Array<{
        kind: "raw_dataset" | "scored_dataset" | "distilled_dataset" | "checkpoint" | "evaluation_report" | (string & {});
        /** from its creation on */
        keep_days: number;
      }>;
    };
    answer: RetentionRules;
  };
  uploadDataset: {
    query: {
      name?: string;
    };
    answer: Dataset;
  };
  listDeployments: {
    query: {
      status?: Array<"active" | "stopping" | "stopped" | (string & {})>;
      limit?: number;
      after?: string;
      user_id?: string;
    };
    answer: {
      deployments: Deployment[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  getDeployment: {
    query: {
      user_id?: string;
    };
    answer: DeploymentDetail;
  };
  scaleDeployment: {
    query: {
      user_id?: string;
    };
    body: {
      min_replicas?: number;
      max_replicas?: number;
    };
    answer: DeploymentDetail;
  };
  stopDeployment: {
    query: {
      user_id?: string;
    };
    body: Record<string, unknown>;
    answer: DeploymentDetail;
  };
  getDeploymentStats: {
    query: {
      since?: string;
      until?: string;
      bucket_s?: number;
      user_id?: string;
    };
    answer: DeploymentStats;
  };
  askGet: {
    answer: unknown;
  };
  askPost: {
    body: unknown;
    answer: unknown;
  };
  askDelete: {
    body: unknown;
    answer: unknown;
  };
  getBillingSummary: {
    query: {
      period?: string;
      user_id?: string;
    };
    answer: BillingSummary;
  };
  getDailyBilling: {
    query: {
      period?: string;
      user_id?: string;
    };
    answer: DailyBilling;
  };
  listBillingRecords: {
    query: {
      limit?: number;
      after?: string;
      period?: string;
      job_type?: Array<"generate" | "audit" | "distill" | "train" | "evaluate" | "deploy" | (string & {})>;
      sort?: "time" | "cost" | (string & {});
      user_id?: string;
    };
    answer: {
      records: BillingRecord[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  getBillingRecord: {
    answer: BillingRecord;
  };
  getRates: {
    query: {
      user_id?: string;
    };
    answer: Rates;
  };
  estimateCost: {
    body: {
      job_type: "generate";
      /** `resources` and the like included */
      payload: {
        /** what is asked of the teacher, e.g. question answering */
        task: string;
        /** how many rows to write */
        size: number;
        /** the model that writes the answers */
        teacher: string;
        /** what the rows are about, e.g. law */
        domain?: string;
        /** how the rows are written, e.g. concise */
        style?: string;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      } | {
        /** what the rows are about, e.g. law */
        domain: string;
        /** how many rows to write */
        num_samples: number;
        /** what is asked of the teacher, e.g. question answering */
        task?: string;
        /** how the rows are written, e.g. concise */
        style?: string;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      };
    } | {
      job_type: "audit";
      /** `resources` and the like included */
      payload: {
        /** s3://, spaces:// or forge://, a bucket and a key; or file:// below the artifacts root */
        dataset_uri: string;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      };
    } | {
      job_type: "distill";
      /** `resources` and the like included */
      payload: {
        /** a dataset of yours, by its id */
        dataset_id: string;
        /** the model that writes the answers */
        teacher: string;
        /** the model that is to learn from the answers */
        student_model?: string;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      } | {
        /** s3://, spaces:// or forge://, a bucket and a key; or file:// below the artifacts root */
        dataset_uri: string;
        /** the model that writes the answers */
        teacher_model: string;
        /** the model that is to learn from the answers */
        student_model?: string;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      };
    } | {
      job_type: "train";
      /** `resources` and the like included */
      payload: {
        /** a dataset of yours, by its id */
        dataset_id: string;
        /** the model that is trained, e.g. llama-3-8b */
        model: string;
        /** how often the dataset is gone through */
        epochs?: number;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      } | {
        /** s3://, spaces:// or forge://, a bucket and a key; or file:// below the artifacts root */
        dataset_uri: string;
        /** the model that is trained, e.g. llama-3-8b */
        model_id: string;
        /** how often the dataset is gone through */
        epochs?: number;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      };
    } | {
      job_type: "evaluate";
      /** `resources` and the like included */
      payload: {
        /** a checkpoint of yours, by its id, or a model's name */
        checkpoint_id: string;
        /** what the checkpoint is scored by: a benchmark's name, or the id of a dataset */
        benchmark?: string;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      } | {
        /** a checkpoint of yours, by its id, or a model's name */
        model_id: string;
        /** what the checkpoint is scored by: a benchmark's name, or the id of a dataset */
        benchmark?: string;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      };
    } | {
      job_type: "deploy";
      /** `resources` and the like included */
      payload: {
        /** a checkpoint of yours, by its id, or a model's name */
        checkpoint_id: string;
        /** a tag that its worker must carry */
        region?: string;
        /** servers that are made in any case; 1 by default */
        min_replicas?: number;
        /** servers at most, while idle workers fit; 1 by default */
        max_replicas?: number;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      } | {
        /** a checkpoint of yours, by its id, or a model's name */
        model_id: string;
        /** a tag that its worker must carry */
        region?: string;
        /** servers that are made in any case; 1 by default */
        min_replicas?: number;
        /** servers at most, while idle workers fit; 1 by default */
        max_replicas?: number;
        /** what the job needs of its worker */
        resources?: Resources;
        /** higher goes first */
        priority?: number;
        /** labels to find the job by */
        tags?: string[];
        /** handed to the worker as it is, e.g. the learning rate */
        params?: Record<string, unknown>;
        /** for those who read the job later */
        notes?: string;
        /** longest an attempt may run, in seconds */
        timeout_s?: number;
        /** how often the job is tried, if its worker fails or is lost */
        max_attempts?: number;
      };
    };
    answer: Estimate;
  };
  exportBilling: {
    query: {
      period?: string;
      user_id?: string;
    };
  };
  getBudget: {
    query: {
      user_id?: string;
    };
    answer: {
      user_id: string;
      budget: Budget | null;
    };
  };
  setBudget: {
    query: {
      user_id?: string;
    };
    body: {
      /** USD a month (UTC) at which submissions are refused with 402; null: no cap */
      cap_usd: number | null;
      /** from which on submissions warn; without it 80 % of the cap; null: never */
      warning_usd?: number | null;
    };
    answer: {
      user_id: string;
      budget: Budget | null;
    };
  };
  listRateCards: {
    query: {
      limit?: number;
      after?: string;
    };
    answer: {
      rate_cards: RateCard[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  createRateCard: {
    body: {
      name: string;
      /** by default now */
      effective_from?: string;
      prices: {
        basis: "work";
        /** per GPU hour, by a word of the GPU's name; `default` for any other */
        gpuHour: Record<string, string>;
        /** USD, as decimal text */
        generationPer1mTokens: string;
        /** without it distillation costs what generation does */
        distillPer1mTokens?: string;
        /** USD, as decimal text */
        auditPer1kRows: string;
        /** USD, as decimal text */
        evalPer100Samples: string;
        /** USD, as decimal text */
        deployPerMonth: string;
      } | {
        basis: "metered";
        /** per GPU hour, by a word of the GPU's name; `default` for any other */
        gpuHour: Record<string, string>;
        /** USD, as decimal text */
        inputPer1mTokens: string;
        /** USD, as decimal text */
        outputPer1mTokens: string;
        /** USD, as decimal text */
        storagePerGbMonth: string;
        /** USD, as decimal text */
        deployPerMonth: string;
      };
    };
    answer: RateCard;
  };
  assignRateCard: {
    body: {
      rate_card: string;
      /** by default now */
      effective_from?: string;
    };
    answer: {
      user_id: string;
      rate_card: string;
      effective_from: string;
    };
  };
  listAudit: {
    query: {
      limit?: number;
      after?: string;
      user_id?: string;
    };
    answer: {
      entries: AuditEntry[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  ping: {
    answer: Identity;
  };
  createSession: {
    body: Record<string, unknown>;
    answer: NewApiKey;
  };
  createApiKey: {
    body: {
      name?: string;
      /** a user's key makes user and worker keys only */
      scope?: "user" | "worker" | "admin" | (string & {});
      /** from then on it opens nothing; by default never, and no later than the key that makes it */
      expires_at?: string | null;
      /** of a worker key: it registers so many workers, and acts for no other; by default for any */
      workers?: number | null;
      /** with `workers`: hosts that their models may be served from, besides the workers' own addresses */
      serving_hosts?: string[];
    };
    answer: NewApiKey;
  };
  listApiKeys: {
    query: {
      limit?: number;
      after?: string;
      user_id?: string;
      sessions?: "true" | "false" | (string & {});
    };
    answer: {
      api_keys: ApiKey[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  revokeApiKey: {
    answer: {
      key_id: string;
      revoked: true;
    };
  };
  getLimits: {
    query: {
      user_id?: string;
    };
    answer: {
      limits: Limit[];
    };
  };
  createUser: {
    body: {
      name: string;
      user_id?: string;
    };
    answer: NewUser;
  };
  listUsers: {
    query: {
      limit?: number;
      after?: string;
    };
    answer: {
      users: User[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  setPaymentCustomer: {
    body: PaymentCustomer;
    answer: User;
  };
  listWorkers: {
    query: {
      limit?: number;
      after?: string;
      status?: Array<"bootstrapping" | "idle" | "busy" | "error" | "dead" | (string & {})>;
      gpu?: string;
      q?: string;
      user_id?: string;
    };
    answer: {
      workers: Worker[];
      has_more: boolean;
      next_cursor: string | null;
    };
  };
  getWorker: {
    answer: WorkerDetail;
  };
  decommissionWorker: {
    answer: {
      worker_id: string;
      decommissioned: true;
    };
  };
  drainWorker: {
    body: Record<string, unknown>;
    answer: Worker;
  };
  undrainWorker: {
    body: Record<string, unknown>;
    answer: Worker;
  };
  resetWorker: {
    body: Record<string, unknown>;
    answer: Worker;
  };
  getWorkerSamples: {
    query: {
      since?: string;
      until?: string;
      bucket_s?: number;
    };
    answer: WorkerSamples;
  };
  getFleet: {
    query: {
      user_id?: string;
    };
    answer: Fleet;
  };
  bootstrapWorker: {
    body: {
      /** trusted from now on, where the machine was made anew */
      ssh_host_key?: string;
    };
    answer: WorkerDetail;
  };
  registerWorker: {
    body: {
      worker_id?: string;
      gpu: {
        name: string;
        memory_gb: number;
        count?: number;
      };
      tags?: string[];
      /** the only ones it takes */
      job_types?: string[] | null;
      /** the only ones it serves */
      tenants?: string[] | null;
      version?: string;
      boot_id?: string;
      job_id?: string | null;
      attempt?: number | null;
    } | {
      ssh_host: string;
      ssh_user: string;
      /** a file in the directory of your SSH keys on the server; `~/.ssh/x` is `x` there */
      ssh_key_path?: string;
      ssh_port?: number;
      /** the host must show this key; without it the first one it shows is trusted, and kept */
      ssh_host_key?: string;
      gpu_count: number;
      gpu_type: string;
      provider?: string;
      metadata?: {
        instance_id?: string;
        region?: string;
        [field: string]: unknown;
      };
      worker_id?: string;
      tags?: string[];
      /** true: only say what would be done */
      plan?: boolean;
    };
    answer: {
      plan: Array<{
        step: string;
        does: string;
        command: string | null;
      }>;
      /** what is written to the machine, by name */
      files: Record<string, string>;
    };
  };
  heartbeat: {
    body: {
      worker_id: string;
      gpu?: {
        util?: number | null;
        mem_used?: number | null;
        mem_total?: number | null;
      };
      status?: string;
      timestamp?: unknown;
      reason?: string;
      job_id?: string | null;
      attempt?: number | null;
      progress?: number | null;
      /** numbers that its job reported, by name */
      metrics?: unknown;
      /** what it serves */
      deployments?: string[];
      /** of those, what does not answer right now */
      unhealthy_deployments?: string[];
    };
    answer: {
      worker_id: string;
      status: "bootstrapping" | "idle" | "busy" | "error" | "dead" | (string & {});
      commands: Command[];
    };
  };
  nextJob: {
    body: {
      worker_id: string;
      wait_seconds?: number;
      /** a secret of the worker's, random for each job: without it an attempt that was handed out with it takes no file, log or result, and is not handed out again */
      lease_token?: string | null;
    };
    answer: HandedJob | {
      job_id: null;
      commands?: Command[];
    };
  };
  jobResult: {
    body: {
      worker_id: string;
      job_id: string;
      attempt?: number | null;
      metrics?: Record<string, unknown>;
      logs_uri?: string | null;
      /** the one that it gave to next_job, if any */
      lease_token?: string | null;
      /** true: the worker takes no other job. Otherwise it may be assigned the next one at once */
      leaving?: boolean;
      status: "completed";
      result?: Record<string, unknown>;
      artifacts_uri?: string | null;
    } | {
      worker_id: string;
      job_id: string;
      attempt?: number | null;
      metrics?: Record<string, unknown>;
      logs_uri?: string | null;
      /** the one that it gave to next_job, if any */
      lease_token?: string | null;
      /** true: the worker takes no other job. Otherwise it may be assigned the next one at once */
      leaving?: boolean;
      status: "failed";
      error?: string;
      retryable?: boolean;
    };
    answer: {
      job_id: string;
      accepted: true;
    };
  };
  appendJobLog: {
    query: {
      worker_id: string;
      attempt: number;
    };
    answer: {
      length: number;
      cancelled: boolean;
    };
  };
  uploadArtifactFile: {
    query: {
      worker_id: string;
      attempt: number;
    };
    answer: ReceivedFile;
  };
  uploadCheckpoint: {
    query: {
      worker_id: string;
      attempt: number;
    };
    answer: ReceivedFile;
  };
  downloadJobInput: {
    query: {
      worker_id: string;
      attempt: number;
    };
  };
  isAlive: {
    answer: {
      ok: true;
    };
  };
  isReady: {
    answer: {
      ready: boolean;
    };
  };
  getOpenApi: {
    answer: Record<string, unknown>;
  };
}
