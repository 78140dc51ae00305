import { z } from "zod";
import { DATASET_URI } from "../artifacts/dataset-uri";
import { DEFAULT_EPOCHS, MAX_ATTEMPTS } from "../constants";
import { MAX_REPLICAS } from "../deployments/workflow";
import { InvalidRequest } from "../errors";
import { label, labels } from "../label";
import type { JobType } from "./job-types";

/** Text with something in it; kept as it came. */
const text = z.string().regex(/\S/, "must not be empty").max(1024);
const name = label(1024);
const uri = z
  .string()
  .min(1)
  .max(2048)
  .meta({ pattern: DATASET_URI.source })
  .describe(
    "s3://, spaces:// or forge://, a bucket and a key; or file:// below the artifacts root",
  );

const region = name.describe("a tag that its worker must carry");

const replicas = z.int().min(1).max(MAX_REPLICAS).optional();
const minReplicas = replicas.describe("servers that are made in any case; 1 by default");
const maxReplicas = replicas.describe("servers at most, while idle workers fit; 1 by default");

const datasetId = name.describe("a dataset of yours, by its id");
const dataset = { dataset_id: datasetId.optional(), dataset_uri: uri.optional() };
const domain = text.describe("what the rows are about, e.g. law");
const teacher = name.describe("the model that writes the answers");
const student = name.describe("the model that is to learn from the answers");
const baseModel = name.describe("the model that is trained, e.g. llama-3-8b");
const checkpoint = name.describe("a checkpoint of yours, by its id, or a model's name");
const benchmark = name.describe(
  "what the checkpoint is scored by: a benchmark's name, or the id of a dataset",
);
const size = z.int().min(1).max(100_000_000).describe("how many rows to write");
const style = text.describe("how the rows are written, e.g. concise");

/** The payload of each job type by the field names of spec.md 2.2's table. */
const PAYLOAD_FIELDS = {
  generate: {
    task: text.describe("what is asked of the teacher, e.g. question answering"),
    size,
    teacher,
    domain: domain.optional(),
    style: style.optional(),
  },
  audit: { dataset_uri: uri },
  distill: { ...dataset, teacher, student_model: student.optional() },
  train: {
    ...dataset,
    model: baseModel,
    epochs: z
      .int()
      .min(1)
      .max(10_000)
      .default(DEFAULT_EPOCHS)
      .describe("how often the dataset is gone through"),
  },
  evaluate: { checkpoint_id: checkpoint, benchmark: benchmark.optional() },
  deploy: {
    checkpoint_id: checkpoint,
    region: region.optional(),
    min_replicas: minReplicas,
    max_replicas: maxReplicas,
  },
} as const satisfies Record<JobType, z.ZodRawShape>;

/** Second names of payload fields (spec.md 2.2, the SDK variant), normalised to the first. */
const PAYLOAD_ALIASES: Record<JobType, Record<string, string>> = {
  generate: { num_samples: "size" },
  audit: {},
  distill: { teacher_model: "teacher" },
  train: { model_id: "model" },
  evaluate: { model_id: "checkpoint_id" },
  deploy: { model_id: "checkpoint_id" },
};

const { generate, distill, train, evaluate, deploy } = PAYLOAD_FIELDS;
const { epochs } = train;
const byId = { dataset_id: datasetId };
const byUri = { dataset_uri: uri };

/** Each type's field sets, each closed in itself. */
const DOCUMENTED_FORMS: Record<JobType, z.ZodRawShape[]> = {
  generate: [
    generate,
    { domain, num_samples: size, task: generate.task.optional(), style: generate.style },
  ],
  audit: [PAYLOAD_FIELDS.audit],
  distill: [
    { ...byId, teacher, student_model: distill.student_model },
    { ...byUri, teacher_model: teacher, student_model: distill.student_model },
  ],
  train: [
    { ...byId, model: baseModel, epochs },
    { ...byUri, model_id: baseModel, epochs },
  ],
  evaluate: [evaluate, { model_id: checkpoint, benchmark: evaluate.benchmark }],
  deploy: [
    deploy,
    {
      model_id: checkpoint,
      region: deploy.region,
      min_replicas: minReplicas,
      max_replicas: maxReplicas,
    },
  ],
};

const resourcesSchema = z
  .strictObject({
    gpu: z.int().min(0).max(1024).optional().describe("how many; 0: none"),
    gpu_type: label(128, "alphanumeric").optional().describe("a word of the GPU's name, e.g. A100"),
    memory_gb: z.int().min(0).max(1_000_000).optional().describe("of one GPU"),
    tags: labels(32).optional().describe("tags that the worker must carry"),
  })
  .meta({ id: "Resources" });
export type Resources = z.infer<typeof resourcesSchema>;

/** What a submission may carry beside its payload (contract.md, Jobs). */
export const OPTION_FIELDS = {
  resources: resourcesSchema.default({}).describe("what the job needs of its worker"),
  priority: z.int().min(-100).max(100).default(0).describe("higher goes first"),
  tags: labels(32).default([]).describe("labels to find the job by"),
  params: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("handed to the worker as it is, e.g. the learning rate"),
  notes: z.string().max(4096).optional().describe("for those who read the job later"),
  timeout_s: z
    .int()
    .min(1)
    .max(30 * 86_400)
    .optional()
    .describe("longest an attempt may run, in seconds"),
  max_attempts: z
    .int()
    .min(1)
    .max(MAX_ATTEMPTS)
    .default(MAX_ATTEMPTS)
    .describe("how often the job is tried, if its worker fails or is lost"),
} as const;

const optionsSchema = z.object(OPTION_FIELDS);
type SubmissionOptions = z.infer<typeof optionsSchema>;

export interface Submission extends SubmissionOptions {
  payload: Record<string, unknown>;
}

const schemas = Object.fromEntries(
  Object.entries(PAYLOAD_FIELDS).map(([type, fields]) => [
    type,
    z.strictObject({ ...fields, ...OPTION_FIELDS }),
  ]),
) as unknown as Record<JobType, z.ZodObject<z.ZodRawShape>>;

export interface PayloadDefaults {
  /** The teacher of a `generate` that names only a domain. */
  teacher: string;
}

/** The schema of a submission in the first field set, and the second names that it may use. */
export const submissionSchema = (type: JobType): z.ZodObject<z.ZodRawShape> => schemas[type];

/** Every second name that a submission of this type may use, with the field that it stands for. */
export const aliasesOf = (type: JobType): Record<string, string> => PAYLOAD_ALIASES[type];

/**
 * The forms that a submission's body may have: the field names of spec.md 2.2's table, and the SDK's.
 * Fields of both may be mixed, as long as none is given twice.
 */
export function submissionForms(type: JobType): z.ZodType {
  const forms = DOCUMENTED_FORMS[type].map((fields) =>
    z.strictObject({ ...fields, ...OPTION_FIELDS }),
  );
  const [first, ...more] = forms;
  return more.length === 0 && first ? first : z.union(forms);
}

/**
 * Checks a submission's body and brings both field sets of spec.md 2.2 to the first one.
 *
 * Throws a ZodError for a field of the wrong form, InvalidRequest for fields that contradict.
 */
export function parseSubmission(
  type: JobType,
  body: unknown,
  defaults: PayloadDefaults,
): Submission {
  const renamed = renameAliases(type, body);
  if (type === "generate" && isRecord(renamed) && renamed.domain !== undefined) {
    renamed.task ??= "synthesize";
    renamed.teacher ??= defaults.teacher;
  }
  const parsed = schemas[type].parse(renamed);
  const payload: Record<string, unknown> = {};
  for (const field of Object.keys(PAYLOAD_FIELDS[type])) {
    if (parsed[field] !== undefined) payload[field] = parsed[field];
  }
  if (type === "distill" || type === "train") requireOneDataset(payload);
  if (type === "deploy") requireOrder(payload);
  return { payload, ...optionsSchema.parse(parsed) };
}

function renameAliases(type: JobType, body: unknown): unknown {
  if (!isRecord(body)) return body;
  const renamed: Record<string, unknown> = { ...body };
  for (const [alias, field] of Object.entries(PAYLOAD_ALIASES[type])) {
    if (!(alias in renamed)) continue;
    const value = renamed[alias];
    delete renamed[alias];
    if (renamed[field] !== undefined && renamed[field] !== value) {
      throw new InvalidRequest(`"${alias}" and "${field}" name one field and differ`, alias);
    }
    renamed[field] = value;
  }
  return renamed;
}

function requireOrder({ min_replicas: min = 1, max_replicas: max }: Record<string, unknown>): void {
  if (max === undefined || Number(min) <= Number(max)) return;
  const message = `"min_replicas" (${min}) is more than "max_replicas" (${max})`;
  throw new InvalidRequest(message, "min_replicas");
}

function requireOneDataset(payload: Record<string, unknown>): void {
  if (payload.dataset_id === undefined && payload.dataset_uri === undefined) {
    throw new InvalidRequest(
      '"dataset_id" is required (or "dataset_uri" in its place)',
      "dataset_id",
    );
  }
  if (payload.dataset_id !== undefined && payload.dataset_uri !== undefined) {
    throw new InvalidRequest('give "dataset_id" or "dataset_uri", not both', "dataset_uri");
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
