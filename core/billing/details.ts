import { z } from "zod";
import type { JobType } from "../jobs/job-types";

/** What spec.md 2.5 has records tell of a job beside what is priced; each where it is known. */
export interface WorkDetails {
  /** Read and written, as they are billed. */
  tokens_used?: number | undefined;
  /** As its worker says, else from its hand-out to its end. */
  duration_sec?: number | undefined;
  teacher_model?: string | undefined;
  /** Rows of the table that was made, where it could be read. */
  num_pairs?: number | undefined;
  gpu_type?: string | undefined;
  num_steps?: number | undefined;
  /** As its worker says, for it may leave rows out; else the rows of the dataset that the job names. */
  dataset_size?: number | undefined;
}

/** What is known of the attempt that is billed. */
export interface WorkFacts {
  type: JobType;
  payload: Record<string, unknown>;
  /** What its worker told. */
  metrics: Record<string, unknown>;
  result: Record<string, unknown>;
  /** Read and written, as they are billed. */
  tokens: number;
  /** From its hand-out to its end. */
  seconds: number;
  /** Of the GPU of the worker that had it. */
  gpuName: string | null;
  /** Rows of the registered dataset that it reads; null: unknown. */
  rowsRead: number | null;
  /** Rows of the table that it made; null: there is none that could be read. */
  rowsMade: number | null;
}

const amount = z.number().min(0).max(1e15);
const name = z.string().trim().min(1).max(200);

/** Details are told, never priced: what a worker says of them that makes no sense was not said. */
export function detailsOf(facts: WorkFacts): WorkDetails {
  const { type, payload, metrics, result, rowsRead, rowsMade } = facts;
  const said = <T>(schema: z.ZodType<T>, ...fields: string[]): T | undefined =>
    fields
      .flatMap((field) => [metrics[field], result[field]])
      .map((value) => schema.safeParse(value).data)
      .find((value) => value !== undefined);
  const always = {
    tokens_used: facts.tokens,
    duration_sec: said(amount, "duration_sec") ?? facts.seconds,
  };
  const teacher = {
    teacher_model: said(name, "teacher_model") ?? name.safeParse(payload.teacher).data,
  };
  switch (type) {
    case "generate":
      return { ...always, ...teacher };
    case "distill":
      return { ...always, ...teacher, num_pairs: rowsMade ?? said(amount, "num_pairs") };
    case "train":
      return {
        ...always,
        gpu_type: said(name, "gpu_type") ?? facts.gpuName ?? undefined,
        num_steps: said(amount, "num_steps", "training_steps"),
        dataset_size: said(amount, "dataset_size") ?? rowsRead ?? undefined,
      };
    case "audit":
    case "evaluate":
    case "deploy":
      return always;
  }
}
