import { z } from "zod";
import { declarationOf, type JobType, typesWhere } from "../jobs/job-types";
import type { DetailName } from "../jobs/types/declaration";

/** A description for the API schema: the job types whose billing records have this detail. */
const onlyFor = (detail: DetailName): string =>
  `only for ${typesWhere(({ details }) => details?.includes(detail) ?? false).join(", ")}`;

/** Fields of spec.md 2.5 that are shown but not priced. */
export const detailsSchema = z.object({
  tokens_used: z.number().optional().describe("`input_tokens` plus `output_tokens`"),
  duration_sec: z
    .number()
    .optional()
    .describe("duration of the last attempt: as its worker reported it, else from dispatch to end"),
  teacher_model: z.string().optional().describe(onlyFor("teacher_model")),
  num_pairs: z
    .number()
    .optional()
    .describe(`${onlyFor("num_pairs")}; counted if the table could be read, else as reported`),
  gpu_type: z.string().optional().describe(onlyFor("gpu_type")),
  num_steps: z.number().optional().describe(onlyFor("num_steps")),
  dataset_size: z
    .number()
    .optional()
    .describe(`rows; ${onlyFor("dataset_size")}`),
});
export type WorkDetails = z.infer<typeof detailsSchema>;

/** Facts about the attempt that is billed. */
export interface WorkFacts {
  type: JobType;
  payload: Record<string, unknown>;
  /** Reported by the worker. */
  metrics: Record<string, unknown>;
  result: Record<string, unknown>;
  /** Input and output tokens, as billed. */
  tokens: number;
  /** From dispatch to end. */
  seconds: number;
  gpuName: string | null;
  /** The number of rows in the registered dataset that the job reads; null if unknown. */
  rowsRead: number | null;
  /** The number of rows in the table that the job made; null if there is no readable table. */
  rowsMade: number | null;
}

const amount = z.number().min(0).max(1e15);
const name = z.string().trim().min(1).max(200);

/**
 * Finds the first valid value of the given fields. For each field, the worker's metrics are read
 * before its result.
 */
type Reported = <T>(schema: z.ZodType<T>, ...fields: string[]) => T | undefined;

type Reader<Name extends DetailName> = (reported: Reported, facts: WorkFacts) => WorkDetails[Name];

const READERS: { [Name in DetailName]: Reader<Name> } = {
  teacher_model: (reported, { payload }) =>
    reported(name, "teacher_model") ?? name.safeParse(payload.teacher).data,
  num_pairs: (reported, { rowsMade }) => rowsMade ?? reported(amount, "num_pairs"),
  gpu_type: (reported, { gpuName }) => reported(name, "gpu_type") ?? gpuName ?? undefined,
  num_steps: (reported) => reported(amount, "num_steps", "training_steps"),
  dataset_size: (reported, { rowsRead }) =>
    reported(amount, "dataset_size") ?? rowsRead ?? undefined,
};

/**
 * Ignores reported values that don't fit their schema. The report is still accepted, because
 * details are never priced.
 */
export function detailsOf(facts: WorkFacts): WorkDetails {
  const { metrics, result } = facts;
  const reported: Reported = (schema, ...fields) =>
    fields
      .flatMap((field) => [metrics[field], result[field]])
      .map((value) => schema.safeParse(value).data)
      .find((value) => value !== undefined);
  const names = declarationOf(facts.type).details ?? [];
  return {
    tokens_used: facts.tokens,
    duration_sec: reported(amount, "duration_sec") ?? facts.seconds,
    ...Object.fromEntries(names.map((detail) => [detail, READERS[detail](reported, facts)])),
  };
}
