import type { Resources } from "./schema.ts";

/** What a submission may carry beside its payload. */
export interface SubmissionParams {
  /** What a worker must have. */
  resources?: Resources | undefined;
  /** From -100 to 100. */
  priority?: number | undefined;
  /** Labels to find it by. */
  tags?: readonly string[] | undefined;
  /** Handed to the worker as they are, e.g. `{ lr: 1e-4 }`. */
  params?: Record<string, unknown> | undefined;
  notes?: string | undefined;
  /** Of one attempt, in seconds. */
  timeout_s?: number | undefined;
  max_attempts?: number | undefined;
}

/** `task`, `size` and `teacher`, or `domain` and `num_samples`. */
export interface GenerateParams extends SubmissionParams {
  domain?: string | undefined;
  num_samples?: number | undefined;
  task?: string | undefined;
  size?: number | undefined;
  teacher?: string | undefined;
  style?: string | undefined;
}

export interface AuditParams extends SubmissionParams {
  dataset_uri: string;
}

/** `dataset_id` or `dataset_uri`, `teacher` or `teacher_model`. */
export interface DistillParams extends SubmissionParams {
  teacher_model?: string | undefined;
  student_model?: string | undefined;
  dataset_uri?: string | undefined;
  dataset_id?: string | undefined;
  teacher?: string | undefined;
}

/** `model` or `model_id`, `dataset_id` or `dataset_uri`. */
export interface TrainParams extends SubmissionParams {
  model?: string | undefined;
  dataset_id?: string | undefined;
  /** By default 3. */
  epochs?: number | undefined;
  model_id?: string | undefined;
  dataset_uri?: string | undefined;
}

/** `checkpoint_id` or `model_id`. */
export interface EvaluateParams extends SubmissionParams {
  checkpoint_id?: string | undefined;
  benchmark?: string | undefined;
  model_id?: string | undefined;
}

/** `checkpoint_id` or `model_id`. */
export interface DeployParams extends SubmissionParams {
  checkpoint_id?: string | undefined;
  region?: string | undefined;
  model_id?: string | undefined;
  min_replicas?: number | undefined;
  max_replicas?: number | undefined;
}
