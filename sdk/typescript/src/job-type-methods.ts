// Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.
import type { Job } from "./job.ts";
import type {
  GenerateParams,
  AuditParams,
  DistillParams,
  TrainParams,
  EvaluateParams,
  DeployParams,
} from "./job-params.ts";
import type { CreateOptions } from "./options.ts";

/** A method for each job type. */
export abstract class JobTypeMethods {
  protected abstract submitJob(type: string, params: object, options?: CreateOptions): Promise<Job>;

  /** Makes a dataset: give `task`, `size` and `teacher`, or `domain` and `num_samples`. */
  async generate(params: GenerateParams, options?: CreateOptions): Promise<Job> {
    return await this.submitJob("generate", params, options);
  }

  /** Scores the rows of a dataset. */
  async audit(params: AuditParams, options?: CreateOptions): Promise<Job> {
    return await this.submitJob("audit", params, options);
  }

  /** Distils a dataset (`dataset_id` or `dataset_uri`) with `teacher` or `teacher_model`. */
  async distill(params: DistillParams, options?: CreateOptions): Promise<Job> {
    return await this.submitJob("distill", params, options);
  }

  /** Trains a checkpoint: give `model` or `model_id`, and `dataset_id` or `dataset_uri`. */
  async train(params: TrainParams, options?: CreateOptions): Promise<Job> {
    return await this.submitJob("train", { ...params, epochs: params.epochs ?? 3 }, options);
  }

  /** Scores a checkpoint, given as `checkpoint_id` or `model_id`. */
  async evaluate(params: EvaluateParams, options?: CreateOptions): Promise<Job> {
    return await this.submitJob("evaluate", params, options);
  }

  /** Serves a checkpoint, given as `checkpoint_id` or `model_id`. */
  async deploy(params: DeployParams, options?: CreateOptions): Promise<Job> {
    return await this.submitJob("deploy", params, options);
  }
}
