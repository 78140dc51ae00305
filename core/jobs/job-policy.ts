import { z } from "zod";
import { JOB_TYPES } from "./job-types";

const rule = z.strictObject({
  gpu: z.int().min(0).max(1024).optional().describe("fewest GPUs"),
  gpu_type: z
    .string()
    .regex(/[A-Za-z0-9]/)
    .max(128)
    .optional()
    .describe("where a job names none"),
  memory_gb: z.int().min(0).max(1_000_000).optional().describe("least memory of a GPU"),
  tags: z.array(z.string().regex(/\S/).max(128)).max(32).optional().describe("tags of the worker"),
  timeout_s: z.int().min(1).optional().describe("longest attempt where a job names none"),
});

/** What every job of a type needs, whatever it says of itself. */
export const jobPolicySchema = z.partialRecord(z.enum(JOB_TYPES), rule);
export type JobPolicy = z.infer<typeof jobPolicySchema>;

/** spec.md 4.7: all but `train` run on a CPU as well as on a GPU. */
export const DEFAULT_JOB_POLICY: JobPolicy = { train: { gpu: 1 } };
