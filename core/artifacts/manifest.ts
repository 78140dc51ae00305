import { z } from "zod";
import { declarationOf, type JobType } from "../jobs/job-types";
import { RAW_DATASET } from "./artifact-form";
import { ARTIFACT_FORMS, artifactPrefix, storeUri } from "./artifacts";
import {
  type DeploymentManifest,
  type Manifest,
  type ManifestFile,
  manifestSchema,
  QUALITY,
  tableSchema,
} from "./manifest-schema";
import { ReportedFields } from "./reported-fields";

export type { Manifest } from "./manifest-schema";

type Column = z.infer<typeof tableSchema>["columns"][number];

/** What the service found in an artifact's table files. Independent of the worker's report. */
export interface MeasuredTable {
  numRows: number;
  columns: Column[];
  /** Files that should be tables but can't be read, with the reason. */
  unreadable: { path: string; why: string }[];
  /** False if the service could read none of the table's files. */
  isRead: boolean;
}

/**
 * What the service measured of a job's output. The job's bill and its manifest use the same
 * measurement.
 */
export interface MeasuredOutput {
  files: { path: string; sizeBytes: number; sha256: string }[];
  /** Null: the artifact is not a dataset, or has no table. */
  table: MeasuredTable | null;
}

/** An input artifact of a job. */
export interface SourceArtifact {
  artifactId: string;
  isDataset: boolean;
  /** Null if the input is not a checkpoint. */
  manifest: Extract<Manifest, { artifact_type: "checkpoint" }> | null;
}

/** Input of `describeArtifact`. Equal input always gives an equal manifest. */
export interface ManifestFacts {
  artifactId: string;
  /** Id of the artifact's folder in the store. */
  storageId: string;
  jobType: JobType;
  jobId: string;
  userId: string;
  createdBy: string;
  /** End of the attempt that completed the job, ISO 8601 UTC. */
  createdAt: string;
  attempt: number;
  workerId: string;
  payload: Record<string, unknown>;
  params: Record<string, unknown>;
  result: Record<string, unknown>;
  metrics: Record<string, unknown>;
  notes: string | null;
  costUsd: number;
  /** Artifacts of the tenant that the job refers to. */
  sourceArtifacts: SourceArtifact[];
  files: ManifestFile[];
  /** Null: the job is not a pipeline step. */
  pipeline: NonNullable<Manifest["pipeline"]> | null;
  /** Null: the artifact has no table, or its files are not visible to the service. */
  table: MeasuredTable | null;
}

/**
 * Builds a manifest that matches the schema and that Postgres can store. If the worker's input
 * prevents this, leaves out the result, the metrics and the table, and lists the result under
 * `contradictions`: worker input must never prevent a job from ending.
 */
export function describeArtifact(facts: ManifestFacts): Manifest {
  try {
    const manifest = buildManifest(facts);
    const { error } = manifestSchema.safeParse(manifest);
    if (!error && isStorableText(JSON.stringify(manifest))) return manifest;
  } catch {
    // Use the manifest without the worker's result.
  }
  const plain = buildManifest({ ...facts, result: {}, metrics: {}, table: null });
  const contradiction = { field: "result", claimed: "all of it", measured: null };
  return { ...plain, contradictions: [contradiction] };
}

/** False if the JSON contains escaped NULs or lone surrogates, which Postgres can't store. */
const isStorableText = (json: string): boolean =>
  !/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i.test(json);

function buildManifest(facts: ManifestFacts): Manifest {
  const { payload, result } = facts;
  const reported = new ReportedFields(result);
  compareUris(facts, reported);
  for (const { path, why } of facts.table?.unreadable ?? []) {
    reported.contradict(`files.${path}`, "a table", why);
  }
  const fields = typeFields(facts, reported);
  return {
    schema_version: "1.0",
    artifact_id: facts.artifactId,
    kind: ARTIFACT_FORMS[facts.jobType].kind,
    created_at: facts.createdAt,
    created_by: facts.createdBy,
    user_id: facts.userId,
    source_jobs: [facts.jobId],
    source_artifacts: facts.sourceArtifacts.map(({ artifactId }) => artifactId),
    job_params: { ...payload, ...facts.params },
    base_model:
      text(payload.model) ?? text(payload.student_model) ?? checkpointOf(facts)?.base_model ?? null,
    dataset_used:
      text(payload.dataset_id) ??
      text(payload.dataset_uri) ??
      text(payload.benchmark) ??
      checkpointOf(facts)?.dataset_used ??
      null,
    git_commit: reported.take("git_commit", z.string()),
    metrics: { ...numbersOf(result.scores), ...numbersOf(facts.metrics) },
    cost_estimate_usd: facts.costUsd,
    notes: facts.notes ?? "",
    job_id: facts.jobId,
    attempt: facts.attempt,
    worker_id: facts.workerId,
    ...(facts.pipeline ? { pipeline: facts.pipeline } : {}),
    files: facts.files,
    verified: facts.files.length > 0 && (facts.table?.unreadable ?? []).length === 0,
    measured: [
      ...(facts.files.length > 0 ? ["files"] : []),
      ...(facts.table?.isRead ? ["num_rows", "schema"] : []),
      "cost_estimate_usd",
    ],
    contradictions: reported.contradictions,
    ...fields,
  };
}

/** Facts about an uploaded dataset. The service measured all of them. */
export interface UploadFacts {
  artifactId: string;
  userId: string;
  createdBy: string;
  createdAt: string;
  name: string | null;
  file: { path: string; sizeBytes: number; sha256: string; numRows: number; columns: Column[] };
}

export function buildUploadManifest({ file, ...facts }: UploadFacts): Manifest {
  return {
    artifact_type: "dataset",
    schema_version: "1.0",
    artifact_id: facts.artifactId,
    kind: RAW_DATASET.kind,
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
    measured: ["files", "num_rows", "schema"],
    contradictions: [],
    num_rows: file.numRows,
    schema: { columns: file.columns },
    quality: {},
  };
}

const count = z.int().min(0);

function typeFields(facts: ManifestFacts, reported: ReportedFields) {
  const { artifactId, payload, params, table } = facts;
  switch (ARTIFACT_FORMS[facts.jobType].type) {
    case "dataset":
      return {
        artifact_type: "dataset" as const,
        ...(table?.isRead
          ? measuredTable(table, reported)
          : {
              num_rows: reported.take("num_rows", count),
              schema: reported.take("schema", tableSchema) ?? { columns: [] },
            }),
        quality: reported.entries("quality", (name) =>
          Object.hasOwn(QUALITY, name) ? QUALITY[name as keyof typeof QUALITY] : z.unknown(),
        ),
      };
    case "checkpoint": {
      const given = new ReportedFields({ ...params });
      return {
        artifact_type: "checkpoint" as const,
        parameter_count: reported.take("parameter_count", count),
        architecture: reported.take("architecture", z.string()),
        training_data: trainingData(facts),
        training_steps: reported.take("training_steps", count),
        training_epochs: count.safeParse(payload.epochs).data ?? null,
        optimizer: reported.take("optimizer", z.string()) ?? given.take("optimizer", z.string()),
        lr: reported.take("lr", z.number()) ?? given.take("lr", z.number()),
      };
    }
    case "eval":
      return {
        artifact_type: "eval" as const,
        eval_id: artifactId,
        checkpoint_id: text(payload.checkpoint_id) ?? null,
        training_steps: checkpointOf(facts)?.training_steps ?? null,
        datasets:
          reported.take("datasets", z.array(z.string())) ?? [payload.benchmark].filter(isText),
        scores: reported.entries("scores", () => z.number()),
      };
    case "deployment":
      return {
        artifact_type: "deployment" as const,
        deployment_id: artifactId,
        checkpoint_id: text(payload.checkpoint_id) ?? null,
        training_steps: checkpointOf(facts)?.training_steps ?? null,
        inference_url: reported.take("inference_url", z.string()),
        status: "active",
        scaling: scalingOf(payload),
      };
  }
}

/** The registered checkpoint that a job evaluates or serves. */
const checkpointOf = ({ jobType, sourceArtifacts }: ManifestFacts): SourceArtifact["manifest"] =>
  declarationOf(jobType).describesCheckpoint
    ? (sourceArtifacts.find(({ manifest }) => manifest)?.manifest ?? null)
    : null;

/** Returns a stopped deployment's manifest, with its last URL, total cost and lifetime. */
export function describeStopped(
  manifest: DeploymentManifest,
  served: { inferenceUrl: string | null; costUsd: number; days: number },
): DeploymentManifest {
  return {
    ...manifest,
    status: "stopped",
    inference_url: served.inferenceUrl ?? manifest.inference_url,
    cost_estimate_usd: served.costUsd,
    metrics: { ...manifest.metrics, deployment_lifetime_days: served.days },
  };
}

/** Replica limits from the job's payload. Later changes of the limits don't change the manifest. */
function scalingOf(payload: Record<string, unknown>) {
  const min = count.safeParse(payload.min_replicas).data ?? 1;
  return {
    min_replicas: min,
    max_replicas: Math.max(min, count.safeParse(payload.max_replicas).data ?? 1),
  };
}

function measuredTable(table: MeasuredTable, reported: ReportedFields) {
  const names = table.columns.map(({ name }) => name);
  return {
    num_rows: reported.preferMeasured(
      "num_rows",
      table.numRows,
      (value) => value === table.numRows,
    ),
    // Type names differ between libraries, so only column names are compared.
    schema: reported.preferMeasured("schema", { columns: table.columns }, (value) => {
      const { data } = tableSchema.safeParse(value);
      const claimed = data?.columns.map(({ name }) => name) ?? [];
      return claimed.length === names.length && claimed.every((name) => names.includes(name));
    }),
  };
}

const URI_FIELDS = ["dataset_uri", "distilled_dataset_uri", "checkpoint_uri", "report_uri"];

/**
 * Records a contradiction for each reported forge:// URI outside of the artifact's folder. Checks
 * nothing if the service sees no files of the artifact.
 */
function compareUris(facts: ManifestFacts, reported: ReportedFields): void {
  const { jobType, artifactId, storageId, result, files } = facts;
  const own = storeUri(artifactPrefix(jobType, storageId));
  // The storage id, which names the folder, differs from the artifact id if another tenant has an
  // artifact with the same id. Forge resolves URIs with either id, so both are correct.
  const byItsId = storeUri(artifactPrefix(jobType, artifactId));
  for (const field of URI_FIELDS) {
    const uri = result[field];
    if (files.length === 0 || !isText(uri) || !uri.startsWith("forge://")) continue;
    if (!uri.startsWith(own) && !uri.startsWith(byItsId)) reported.contradict(field, uri, own);
  }
}

/**
 * Ids of the registered datasets that the checkpoint was trained on; if none is registered, the
 * dataset id that the job names.
 */
function trainingData({ sourceArtifacts, payload }: ManifestFacts): string[] {
  const known = sourceArtifacts.filter(({ isDataset }) => isDataset);
  if (known.length > 0) return known.map(({ artifactId }) => artifactId);
  return [payload.dataset_id].filter(isText);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

const text = (value: unknown): string | undefined => (isText(value) ? value : undefined);

function numbersOf(value: unknown): Record<string, number> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter(
      (entry): entry is [string, number] => typeof entry[1] === "number",
    ),
  );
}
