// Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.

export const JOB_TYPES = ["generate", "audit", "distill", "train", "evaluate", "deploy"] as const;
export type JobType = (typeof JOB_TYPES)[number];

export const JOB_STATUSES = ["pending", "provisioning_worker", "assigned", "running", "completed", "failed"] as const;
export const PIPELINE_STATUSES = ["running", "waiting_approval", "completed", "failed", "cancelled"] as const;
export const ARTIFACT_KINDS = ["raw_dataset", "scored_dataset", "distilled_dataset", "checkpoint", "evaluation_report", "deployment"] as const;

/** The type whose jobs make deployments. */
export const DEPLOYMENT_TYPE: JobType = "deploy";

/** For each entry of a sweep, a `varied` job runs, and then a `judged` job on its result. */
export const SWEEP: { varied: JobType; judged: JobType } = {"varied":"train","judged":"evaluate"};

/** The steps of each template, in their order. */
export const TEMPLATE_STEPS = {
  "byo-data": ["audit","distill","train","evaluate","deploy"],
  "synthetic": ["generate","audit","distill","train","evaluate","deploy"],
} satisfies Record<string, readonly JobType[]>;

interface JobTypeFacts {
  /** Text above the submission form. */
  about: string;
  /** Description of a pipeline step. */
  step: string;
  /** Example of a gate condition on its result. */
  gate: string;
  /** The type of artifact that a completed job creates. */
  makes: string;
  /** The kind of input that a template fills in from an earlier step. */
  takes: "dataset" | "checkpoint" | null;
  /** Alternative names of payload fields, each with its field name. */
  aliases: Record<string, string>;
  /** Options of `forge jobs submit`, by payload field. */
  flags: Record<string, string>;
}

export const JOB_TYPE_FACTS: Record<JobType, JobTypeFacts> = {
  generate: {
    "about": "A teacher model writes a dataset.",
    "step": "Make a dataset with a teacher model.",
    "gate": "metrics.tokens_generated > 0",
    "makes": "dataset",
    "takes": null,
    "aliases": {
      "num_samples": "size"
    },
    "flags": {
      "domain": "--domain",
      "num_samples": "--num-samples",
      "task": "--task",
      "teacher": "--teacher",
      "style": "--style"
    }
  },
  audit: {
    "about": "The rows of a dataset are scored.",
    "step": "Score the dataset's rows.",
    "gate": "quality.clarity_mean >= 0.6",
    "makes": "dataset",
    "takes": "dataset",
    "aliases": {},
    "flags": {
      "dataset_uri": "--dataset"
    }
  },
  distill: {
    "about": "A teacher answers a dataset's questions, for a student to learn from.",
    "step": "Have a teacher answer, and keep the good rows.",
    "gate": "metrics.tokens_generated > 0",
    "makes": "dataset",
    "takes": "dataset",
    "aliases": {
      "teacher_model": "teacher"
    },
    "flags": {
      "dataset_id": "--dataset",
      "dataset_uri": "--dataset",
      "teacher": "--teacher",
      "student_model": "--student",
      "teacher_model": "--teacher"
    }
  },
  train: {
    "about": "A model is trained on a dataset. The result is a checkpoint.",
    "step": "Train a model on the dataset.",
    "gate": "metrics.final_loss < 1",
    "makes": "checkpoint",
    "takes": "dataset",
    "aliases": {
      "model_id": "model"
    },
    "flags": {
      "model": "--model",
      "dataset_id": "--dataset",
      "dataset_uri": "--dataset",
      "epochs": "--epochs",
      "model_id": "--model"
    }
  },
  evaluate: {
    "about": "A checkpoint is scored.",
    "step": "Score the checkpoint.",
    "gate": "scores.overall >= 0.7",
    "makes": "eval",
    "takes": "checkpoint",
    "aliases": {
      "model_id": "checkpoint_id"
    },
    "flags": {
      "checkpoint_id": "--checkpoint",
      "benchmark": "--benchmark",
      "model_id": "--checkpoint"
    }
  },
  deploy: {
    "about": "A checkpoint is served at an address, until you stop it.",
    "step": "Serve the checkpoint until someone stops it.",
    "gate": "metrics.gpu_hours < 1",
    "makes": "deployment",
    "takes": "checkpoint",
    "aliases": {
      "model_id": "checkpoint_id"
    },
    "flags": {
      "checkpoint_id": "--checkpoint",
      "region": "--region",
      "min_replicas": "--min-replicas",
      "max_replicas": "--max-replicas",
      "model_id": "--checkpoint"
    }
  },
};
