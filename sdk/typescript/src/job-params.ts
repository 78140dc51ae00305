// Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.
import type { SubmissionParams } from "./submission.ts";

/** Makes a dataset: give `task`, `size` and `teacher`, or `domain` and `num_samples`. */
export interface GenerateParams extends SubmissionParams {
  /** what the rows are about, e.g. law */
  domain?: string | undefined;
  /** how many rows to write */
  num_samples?: number | undefined;
  /** the teacher's task, e.g. question answering */
  task?: string | undefined;
  /** how many rows to write */
  size?: number | undefined;
  /** the model that writes the answers */
  teacher?: string | undefined;
  /** how the rows are written, e.g. concise */
  style?: string | undefined;
}

/** Scores the rows of a dataset. */
export interface AuditParams extends SubmissionParams {
  /** `s3://bucket/key` (or `spaces://`, `forge://`), or a `file://` path below the artifacts root */
  dataset_uri: string;
}

/** Distils a dataset (`dataset_id` or `dataset_uri`) with `teacher` or `teacher_model`. */
export interface DistillParams extends SubmissionParams {
  /** the model that writes the answers */
  teacher_model?: string | undefined;
  /** the model that learns from the answers */
  student_model?: string | undefined;
  /** `s3://bucket/key` (or `spaces://`, `forge://`), or a `file://` path below the artifacts root */
  dataset_uri?: string | undefined;
  /** the id of one of your datasets */
  dataset_id?: string | undefined;
  /** the model that writes the answers */
  teacher?: string | undefined;
}

/** Trains a checkpoint: give `model` or `model_id`, and `dataset_id` or `dataset_uri`. */
export interface TrainParams extends SubmissionParams {
  /** the model that is trained, e.g. llama-3-8b */
  model?: string | undefined;
  /** the id of one of your datasets */
  dataset_id?: string | undefined;
  /** passes over the dataset; 3 by default */
  epochs?: number | undefined;
  /** the model that is trained, e.g. llama-3-8b */
  model_id?: string | undefined;
  /** `s3://bucket/key` (or `spaces://`, `forge://`), or a `file://` path below the artifacts root */
  dataset_uri?: string | undefined;
}

/** Scores a checkpoint, given as `checkpoint_id` or `model_id`. */
export interface EvaluateParams extends SubmissionParams {
  /** the id of one of your checkpoints, or a model's name */
  checkpoint_id?: string | undefined;
  /** a benchmark's name or a dataset's id, to score the checkpoint on */
  benchmark?: string | undefined;
  /** the id of one of your checkpoints, or a model's name */
  model_id?: string | undefined;
}

/** Serves a checkpoint, given as `checkpoint_id` or `model_id`. */
export interface DeployParams extends SubmissionParams {
  /** the id of one of your checkpoints, or a model's name */
  checkpoint_id?: string | undefined;
  /** a tag that the worker must have */
  region?: string | undefined;
  /** the id of one of your checkpoints, or a model's name */
  model_id?: string | undefined;
  /** minimum number of replicas; 1 by default */
  min_replicas?: number | undefined;
  /** maximum number of replicas, if suitable workers are idle; by default `min_replicas` */
  max_replicas?: number | undefined;
}
