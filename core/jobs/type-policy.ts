import { z } from "zod";
import { JOB_TYPES } from "./job-types";
import { DECLARATIONS } from "./types";
import type { JobTypeDeclaration } from "./types/declaration";

const rule = z.strictObject({
  gpu: z.int().min(0).max(1024).optional().describe("fewest GPUs"),
  gpu_type: z
    .string()
    .regex(/[A-Za-z0-9]/)
    .max(128)
    .optional()
    .describe("GPU type if the job names none"),
  memory_gb: z.int().min(0).max(1_000_000).optional().describe("least memory of a GPU"),
  tags: z.array(z.string().regex(/\S/).max(128)).max(32).optional().describe("tags of the worker"),
  timeout_s: z.int().min(1).optional().describe("longest attempt if the job sets none"),
});

/** Requirements and defaults for all jobs of a type. */
export const jobPolicySchema = z.partialRecord(z.enum(JOB_TYPES), rule);
export type JobPolicy = z.infer<typeof jobPolicySchema>;

/** The declared requirements. A type that declares none runs on a CPU or a GPU (spec.md 4.7). */
export const DEFAULT_JOB_POLICY: JobPolicy = Object.fromEntries(
  DECLARATIONS.flatMap(({ type, requirements }: JobTypeDeclaration) =>
    requirements ? [[type, requirements]] : [],
  ),
);
