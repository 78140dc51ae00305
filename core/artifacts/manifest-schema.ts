import { z } from "zod";

/** Manifest schemas (spec.md 2.6): generic fields, then the fields of each artifact type. */

export const manifestFileSchema = z
  .object({
    path: z.string().describe("path below the artifact's folder"),
    size_bytes: z.int().min(0),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
  })
  .meta({ id: "ArtifactFile", description: "a file of an artifact" });

const contradiction = z
  .object({
    field: z.string(),
    claimed: z.unknown().describe("what the worker reported"),
    measured: z
      .unknown()
      .describe("what the service found; null if the service only knows that the report is wrong"),
  })
  .describe("a worker's report that the service found to be wrong");

const numbers = z.record(z.string(), z.number());

const generic = {
  schema_version: z.literal("1.0"),
  artifact_id: z.string(),
  kind: z.string().describe("raw_dataset, scored_dataset, distilled_dataset, checkpoint, …"),
  created_at: z.iso.datetime().describe("end of the attempt that completed the job"),
  created_by: z.string().describe("the name of the key that submitted the job"),
  user_id: z.string(),
  source_jobs: z.array(z.string()),
  source_artifacts: z.array(z.string()).describe("the tenant's artifacts it was made from"),
  job_params: z.record(z.string(), z.unknown()),
  base_model: z.string().nullable(),
  dataset_used: z.string().nullable(),
  git_commit: z.string().nullable(),
  metrics: numbers,
  cost_estimate_usd: z
    .number()
    .min(0)
    .describe("the job's cost; its billing record has the details"),
  notes: z.string(),
  job_id: z.string().optional().describe("absent if the artifact was uploaded"),
  attempt: z.int().min(1).optional().describe("the attempt that completed the job"),
  worker_id: z.string().optional(),
  pipeline: z
    .object({
      pipeline_id: z.string(),
      step: z.string(),
      reused: z
        .array(z.object({ step: z.string(), job_id: z.string(), artifact_id: z.string() }))
        .describe("steps before this one that used the artifact of an earlier job"),
    })
    .optional()
    .describe("absent if the job is not part of a pipeline"),
  files: z.array(manifestFileSchema),
  verified: z
    .boolean()
    .describe(
      "false: the service could not access the files, or could not read a table; see `measured`",
    ),
  measured: z.array(z.string()).describe("fields that the service measured itself"),
  contradictions: z.array(contradiction),
};

/** Quality fields of spec.md. An audit may add others. */
export const QUALITY = {
  clarity_mean: z.number().optional(),
  correctness_mean: z.number().optional(),
  educational_mean: z.number().optional(),
  quality_tier: z.string().optional(),
};

export const tableSchema = z.object({
  columns: z.array(z.object({ name: z.string(), dtype: z.string() })),
});

const dataset = z
  .object({
    artifact_type: z.literal("dataset"),
    ...generic,
    num_rows: z.int().min(0).nullable(),
    schema: tableSchema,
    quality: z.object(QUALITY).catchall(z.unknown()),
  })
  .meta({ id: "DatasetManifest" });

const checkpoint = z
  .object({
    artifact_type: z.literal("checkpoint"),
    ...generic,
    parameter_count: z.int().min(0).nullable(),
    architecture: z.string().nullable(),
    training_data: z.array(z.string()).describe("ids of datasets"),
    training_steps: z.int().min(0).nullable(),
    training_epochs: z.int().min(0).nullable(),
    optimizer: z.string().nullable(),
    lr: z.number().nullable(),
  })
  .meta({ id: "CheckpointManifest" });

/**
 * The field `training_steps` in the manifest of an evaluation or a deployment. Its value is copied
 * from the checkpoint that is evaluated or served, as are `base_model` and `dataset_used`.
 */
const checkpointTrainingSteps = z
  .int()
  .min(0)
  .nullish()
  .describe("training steps of the checkpoint, if it is registered");

const evaluation = z
  .object({
    artifact_type: z.literal("eval"),
    ...generic,
    eval_id: z.string(),
    checkpoint_id: z.string().nullable(),
    training_steps: checkpointTrainingSteps,
    datasets: z.array(z.string()),
    scores: z
      .object({
        overall: z.number().optional(),
        helpfulness: z.number().optional(),
        correctness: z.number().optional(),
        style: z.number().optional(),
      })
      .catchall(z.number()),
  })
  .meta({ id: "EvalManifest" });

const deployment = z
  .object({
    artifact_type: z.literal("deployment"),
    ...generic,
    deployment_id: z.string(),
    checkpoint_id: z.string().nullable(),
    training_steps: checkpointTrainingSteps,
    inference_url: z.string().nullable().describe("for a stopped deployment, its last URL"),
    status: z.string().describe("active or stopped"),
    scaling: z.object({ min_replicas: z.int().min(0), max_replicas: z.int().min(0) }),
  })
  .meta({ id: "DeploymentManifest" });

export const MANIFEST_SCHEMAS = { dataset, checkpoint, eval: evaluation, deployment };

export const manifestSchema = z
  .discriminatedUnion("artifact_type", [dataset, checkpoint, evaluation, deployment])
  .meta({ id: "Manifest", description: "what the artifact is, and where it came from" });

export type Manifest = z.infer<typeof manifestSchema>;
export type DeploymentManifest = z.infer<typeof deployment>;
export type ManifestFile = z.infer<typeof manifestFileSchema>;
export type Contradiction = z.infer<typeof contradiction>;
