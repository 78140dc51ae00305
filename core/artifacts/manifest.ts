import { z } from "zod";
import type { JobType } from "../jobs/job-types";
import { ARTIFACT_FORMS, artifactPrefix, storeUri } from "./artifacts";
import {
  type DeploymentManifest,
  type Manifest,
  type ManifestFile,
  manifestSchema,
  QUALITY,
} from "./manifest-schema";
import { ReportedFields } from "./reported-fields";

export type { Manifest } from "./manifest-schema";

interface Column {
  name: string;
  dtype: string;
}

/** A table of an artifact, as it was read. */
export interface MeasuredTable {
  numRows: number;
  columns: Column[];
  /** Files that should be tables and can't be read as such, with why. */
  unreadable: { path: string; why: string }[];
  /** False: none of its files could be read, so that nothing is known of it. */
  isRead: boolean;
}

/** An artifact that a job was made from. */
export interface SourceArtifact {
  artifactId: string;
  isDataset: boolean;
  /** Of a checkpoint. */
  manifest: Extract<Manifest, { artifact_type: "checkpoint" }> | null;
}

/** Everything a manifest is made of; the same facts always give the same manifest. */
export interface ManifestFacts {
  artifactId: string;
  /** Of its folder in the store. */
  storageId: string;
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
  /** Artifacts of the tenant that the job named. */
  sourceArtifacts: SourceArtifact[];
  files: ManifestFile[];
  /** Null: it is no pipeline's step. */
  pipeline: NonNullable<Manifest["pipeline"]> | null;
  /** Null: there is none to be seen. */
  table: MeasuredTable | null;
}

/**
 * A manifest that fits its schema and can be stored. Where what a worker said can't be made to, whatever
 * it is, all of it counts as contradicted: no word of a worker's keeps a job from its end.
 */
export function describeArtifact(facts: ManifestFacts): Manifest {
  try {
    const manifest = buildManifest(facts);
    const { error } = manifestSchema.safeParse(manifest);
    if (!error && isStorableText(JSON.stringify(manifest))) return manifest;
  } catch {
    // As below.
  }
  const plain = buildManifest({ ...facts, result: {}, metrics: {}, table: null });
  const contradiction = { field: "result", claimed: "all of it", measured: null };
  return { ...plain, contradictions: [contradiction] };
}

/** In JSON, NUL and half a pair stand as escapes; a database takes neither. */
const isStorableText = (json: string): boolean =>
  !/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i.test(json);

/** A manifest as spec.md 2.6 has it: the generic fields, and those of the artifact's type. */
function buildManifest(facts: ManifestFacts): Manifest {
  const form = ARTIFACT_FORMS[facts.jobType];
  const { payload, result } = facts;
  const claims = new ReportedFields(result);
  compareUris(facts, claims);
  for (const { path, why } of facts.table?.unreadable ?? []) {
    claims.contradict(`files.${path}`, "a table", why);
  }
  const fields = typeFields(facts, claims);
  const generic = {
    schema_version: "1.0" as const,
    artifact_id: facts.artifactId,
    kind: form.kind,
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
    git_commit: claims.take("git_commit", z.string()),
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
    contradictions: claims.contradictions,
  };
  return { ...generic, ...fields };
}

/** What is known of an uploaded dataset; all of it measured, none of it claimed. */
export interface UploadFacts {
  artifactId: string;
  userId: string;
  createdBy: string;
  createdAt: string;
  name: string | null;
  file: { path: string; sizeBytes: number; sha256: string; numRows: number; columns: Column[] };
}

/** The manifest of a dataset that no job made. */
export function buildUploadManifest({ file, ...facts }: UploadFacts): Manifest {
  return {
    artifact_type: "dataset",
    schema_version: "1.0",
    artifact_id: facts.artifactId,
    kind: ARTIFACT_FORMS.generate.kind,
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
const columnsClaim = z.object({
  columns: z.array(z.object({ name: z.string(), dtype: z.string() })),
});

function typeFields(facts: ManifestFacts, claims: ReportedFields) {
  const { artifactId, payload, params, table } = facts;
  switch (ARTIFACT_FORMS[facts.jobType].type) {
    case "dataset":
      return {
        artifact_type: "dataset" as const,
        ...(table?.isRead
          ? measuredTable(table, claims)
          : {
              num_rows: claims.take("num_rows", count),
              schema: claims.take("schema", columnsClaim) ?? { columns: [] },
            }),
        quality: claims.entries("quality", (name) =>
          Object.hasOwn(QUALITY, name) ? QUALITY[name as keyof typeof QUALITY] : z.unknown(),
        ),
      };
    case "checkpoint": {
      const given = new ReportedFields({ ...params });
      return {
        artifact_type: "checkpoint" as const,
        parameter_count: claims.take("parameter_count", count),
        architecture: claims.take("architecture", z.string()),
        training_data: trainingData(facts),
        training_steps: claims.take("training_steps", count),
        training_epochs: count.safeParse(payload.epochs).data ?? null,
        optimizer: claims.take("optimizer", z.string()) ?? given.take("optimizer", z.string()),
        lr: claims.take("lr", z.number()) ?? given.take("lr", z.number()),
      };
    }
    case "eval":
      return {
        artifact_type: "eval" as const,
        eval_id: artifactId,
        checkpoint_id: text(payload.checkpoint_id) ?? null,
        training_steps: checkpointOf(facts)?.training_steps ?? null,
        datasets:
          claims.take("datasets", z.array(z.string())) ?? [payload.benchmark].filter(isText),
        scores: claims.entries("scores", () => z.number()),
      };
    case "deployment":
      return {
        artifact_type: "deployment" as const,
        deployment_id: artifactId,
        checkpoint_id: text(payload.checkpoint_id) ?? null,
        training_steps: checkpointOf(facts)?.training_steps ?? null,
        inference_url: claims.take("inference_url", z.string()),
        status: "active",
        scaling: scalingOf(payload),
      };
  }
}

/** The registered checkpoint that a job evaluates or serves. */
const checkpointOf = ({ jobType, sourceArtifacts }: ManifestFacts): SourceArtifact["manifest"] =>
  jobType === "evaluate" || jobType === "deploy"
    ? (sourceArtifacts.find(({ manifest }) => manifest)?.manifest ?? null)
    : null;

/** A deployment's manifest once it has stopped: where it was served last, and what all of it cost. */
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

/** As the job asks for it; what it has later, the deployment tells. */
function scalingOf(payload: Record<string, unknown>) {
  const min = count.safeParse(payload.min_replicas).data ?? 1;
  return {
    min_replicas: min,
    max_replicas: Math.max(min, count.safeParse(payload.max_replicas).data ?? 1),
  };
}

function measuredTable(table: MeasuredTable, claims: ReportedFields) {
  const names = table.columns.map(({ name }) => name);
  return {
    num_rows: claims.settle("num_rows", table.numRows, (said) => said === table.numRows),
    // What a type is called is a matter of words, so that only names contradict.
    schema: claims.settle("schema", { columns: table.columns }, (said) => {
      const { data } = columnsClaim.safeParse(said);
      const claimed = data?.columns.map(({ name }) => name) ?? [];
      return claimed.length === names.length && claimed.every((name) => names.includes(name));
    }),
  };
}

const URI_FIELDS = ["dataset_uri", "distilled_dataset_uri", "checkpoint_uri", "report_uri"];

/** A place in our store that a worker names must be in the artifact's own folder. */
function compareUris(facts: ManifestFacts, claims: ReportedFields): void {
  const { jobType, artifactId, storageId, result, files } = facts;
  const own = storeUri(artifactPrefix(jobType, storageId));
  // By the id that it chose, its tenant's jobs find the same folder.
  const byItsId = storeUri(artifactPrefix(jobType, artifactId));
  for (const field of URI_FIELDS) {
    const said = result[field];
    if (files.length === 0 || !isText(said) || !said.startsWith("forge://")) continue;
    if (!said.startsWith(own) && !said.startsWith(byItsId)) claims.contradict(field, said, own);
  }
}

/** The datasets it was trained on; one that the registry doesn't know as the job names it. */
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
