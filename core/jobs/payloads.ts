import { z } from "zod";
import { InvalidRequest } from "../errors";
import { label, labels } from "../label";
import { declarationOf, type JobType, mapByType } from "./job-types";
import { MAX_ATTEMPTS } from "./retry";
import type { PayloadDefaults } from "./types/declaration";

const resourcesSchema = z
  .strictObject({
    gpu: z.int().min(0).max(1024).optional().describe("number of GPUs; 0: none"),
    gpu_type: label(128, "alphanumeric").optional().describe("a word of the GPU's name, e.g. A100"),
    memory_gb: z.int().min(0).max(1_000_000).optional().describe("memory of one GPU"),
    tags: labels(32).optional().describe("tags that the worker must have"),
  })
  .meta({ id: "Resources" });
export type Resources = z.infer<typeof resourcesSchema>;

/** Fields that a submission may have in addition to its payload (contract.md, Jobs). */
export const OPTION_FIELDS = {
  resources: resourcesSchema.default({}).describe("what the job requires of its worker"),
  priority: z.int().min(-100).max(100).default(0).describe("higher goes first"),
  tags: labels(32).default([]).describe("labels to find the job by"),
  params: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("passed to the worker unchanged, e.g. the learning rate"),
  notes: z.string().max(4096).optional().describe("for those who read the job later"),
  timeout_s: z
    .int()
    .min(1)
    .max(30 * 86_400)
    .optional()
    .describe("longest duration of an attempt, in seconds"),
  max_attempts: z
    .int()
    .min(1)
    .max(MAX_ATTEMPTS)
    .default(MAX_ATTEMPTS)
    .describe("maximum number of attempts; a further attempt follows if a worker fails or is lost"),
} as const;

const optionsSchema = z.object(OPTION_FIELDS);
type SubmissionOptions = z.infer<typeof optionsSchema>;

export interface Submission extends SubmissionOptions {
  payload: Record<string, unknown>;
}

const schemas = mapByType<z.ZodObject<z.ZodRawShape>>(({ payload }) =>
  z.strictObject({ ...payload.fields, ...OPTION_FIELDS }),
);

/** The schema of a submission whose aliases were replaced by field names. */
export const submissionSchema = (type: JobType): z.ZodObject<z.ZodRawShape> => schemas[type];

/** The aliases that a submission of this type may use, each with its field name. */
export const aliasesOf = (type: JobType): Record<string, string> =>
  declarationOf(type).payload.aliases ?? {};

/**
 * The documented forms of a submission's body: the field names of spec.md 2.2, and those of the
 * SDK. A body may mix both. A field given by both names must have equal values.
 */
export function submissionForms(type: JobType): z.ZodType {
  const { fields, forms: declared = [fields] } = declarationOf(type).payload;
  const forms = declared.map((form) => z.strictObject({ ...form, ...OPTION_FIELDS }));
  const [first, ...more] = forms;
  return more.length === 0 && first ? first : z.union(forms);
}

/**
 * Validates a submission's body and replaces aliases (spec.md 2.2) by field names.
 * @throws ZodError for an invalid field, InvalidRequest for fields that contradict each other.
 */
export function parseSubmission(
  type: JobType,
  body: unknown,
  defaults: PayloadDefaults,
): Submission {
  const declared = declarationOf(type).payload;
  const renamed = renameAliases(type, body);
  if (isRecord(renamed)) declared.complete?.(renamed, defaults);
  const parsed = schemas[type].parse(renamed);
  const payload: Record<string, unknown> = {};
  for (const field of Object.keys(declared.fields)) {
    if (parsed[field] !== undefined) payload[field] = parsed[field];
  }
  declared.check?.(payload);
  return { payload, ...optionsSchema.parse(parsed) };
}

function renameAliases(type: JobType, body: unknown): unknown {
  if (!isRecord(body)) return body;
  const renamed: Record<string, unknown> = { ...body };
  for (const [alias, field] of Object.entries(aliasesOf(type))) {
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

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
