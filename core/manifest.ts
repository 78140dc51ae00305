import { ARTIFACT_FORMS } from "./artifacts";
import type { JobType } from "./job-types";

interface ManifestFile {
  path: string;
  size_bytes: number;
  sha256: string;
}

/** Everything a manifest is made of; the same facts always give the same manifest. */
export interface ManifestFacts {
  artifactId: string;
  jobType: JobType;
  jobId: string;
  userId: string;
  createdBy: string;
  /** When the winning attempt ended, ISO 8601 UTC. */
  createdAt: string;
  attempt: number;
  workerId: string;
  payload: Record<string, unknown>;
  params: Record<string, unknown>;
  result: Record<string, unknown>;
  metrics: Record<string, unknown>;
  notes: string | null;
  costUsd: number;
  files: ManifestFile[];
}

export type Manifest = Record<string, unknown>;

/** A manifest as spec.md 2.6 has it: the generic fields, and those of the artifact's type. */
export function buildManifest(facts: ManifestFacts): Manifest {
  const form = ARTIFACT_FORMS[facts.jobType];
  const { payload, result } = facts;
  return {
    artifact_type: form.type,
    artifact_id: facts.artifactId,
    kind: form.kind,
    created_at: facts.createdAt,
    created_by: facts.createdBy,
    user_id: facts.userId,
    source_jobs: [facts.jobId],
    source_artifacts: [payload.dataset_id, payload.checkpoint_id].filter(isText),
    job_params: { ...payload, ...facts.params },
    base_model: text(payload.model) ?? text(payload.student_model) ?? null,
    dataset_used: text(payload.dataset_id) ?? text(payload.dataset_uri) ?? null,
    git_commit: text(result.git_commit) ?? null,
    metrics: { ...numbersOf(result.scores), ...numbersOf(facts.metrics) },
    cost_estimate_usd: facts.costUsd,
    notes: facts.notes ?? "",
    job_id: facts.jobId,
    attempt: facts.attempt,
    worker_id: facts.workerId,
    files: facts.files,
    // False: the worker names files that no configured store can see.
    verified: facts.files.length > 0,
    ...typeFields(facts),
  };
}

/** What is known of an uploaded dataset; all of it measured, none of it claimed. */
export interface UploadFacts {
  artifactId: string;
  userId: string;
  createdBy: string;
  createdAt: string;
  name: string | null;
  file: {
    path: string;
    sizeBytes: number;
    sha256: string;
    numRows: number;
    columns: { name: string; dtype: string }[];
  };
}

/** The manifest of a dataset that no job made. */
export function buildUploadManifest({ file, ...facts }: UploadFacts): Manifest {
  const { type, kind } = ARTIFACT_FORMS.generate;
  return {
    artifact_type: type,
    artifact_id: facts.artifactId,
    kind,
    created_at: facts.createdAt,
    created_by: facts.createdBy,
    user_id: facts.userId,
    source_jobs: [],
    source_artifacts: [],
    job_params: {},
    base_model: null,
    dataset_used: null,
    git_commit: null,
    metrics: {},
    cost_estimate_usd: 0,
    notes: facts.name ?? "",
    files: [{ path: file.path, size_bytes: file.sizeBytes, sha256: file.sha256 }],
    verified: true,
    num_rows: file.numRows,
    schema: { columns: file.columns },
    quality: {},
  };
}

function typeFields(facts: ManifestFacts): Manifest {
  const { artifactId, payload, params, result } = facts;
  switch (ARTIFACT_FORMS[facts.jobType].type) {
    case "dataset":
      return {
        num_rows: result.num_rows ?? null,
        schema: result.schema ?? { columns: [] },
        quality: result.quality ?? {},
      };
    case "checkpoint":
      return {
        parameter_count: result.parameter_count ?? null,
        architecture: result.architecture ?? null,
        training_data: [payload.dataset_id].filter(isText),
        training_steps: result.training_steps ?? null,
        training_epochs: payload.epochs ?? null,
        optimizer: result.optimizer ?? params.optimizer ?? null,
        lr: result.lr ?? params.lr ?? null,
      };
    case "eval":
      return {
        eval_id: artifactId,
        checkpoint_id: payload.checkpoint_id,
        datasets: result.datasets ?? [payload.benchmark].filter(isText),
        scores: result.scores ?? {},
      };
    case "deployment":
      return {
        deployment_id: artifactId,
        checkpoint_id: payload.checkpoint_id,
        inference_url: result.inference_url ?? null,
        status: "active",
        scaling: result.scaling ?? { min_replicas: 1, max_replicas: 1 },
      };
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function text(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}

function numbersOf(value: unknown): Record<string, number> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter(
      (entry): entry is [string, number] => typeof entry[1] === "number",
    ),
  );
}
