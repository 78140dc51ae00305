import { z } from "zod";
import { DATASET_URI } from "../../artifacts/uri-pattern";
import { InvalidRequest } from "../../errors";
import { label } from "../../label";
import type { CommandOption } from "./declaration";

/** Payload fields, checks and options that several job types share. */

/** Text that is not blank. It is not trimmed. */
export const text = z.string().regex(/\S/, "must not be empty").max(1024);
export const name = label(1024);

export const datasetUri = z
  .string()
  .min(1)
  .max(2048)
  .meta({ pattern: DATASET_URI.source })
  .describe(
    "`s3://bucket/key` (or `spaces://`, `forge://`), or a `file://` path below the artifacts root",
  );
export const datasetId = name.describe("the id of one of your datasets");
/** Exactly one of the two must be given: see `requireOneDataset`. */
export const dataset = { dataset_id: datasetId.optional(), dataset_uri: datasetUri.optional() };

export const checkpoint = name.describe("the id of one of your checkpoints, or a model's name");
export const teacher = name.describe("the model that writes the answers");

export function requireOneDataset(payload: Record<string, unknown>): void {
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

export const DATASET_OPTION: CommandOption = {
  name: "dataset",
  field: "dataset_id",
  help: "Id or URI of a dataset.",
};

export const CHECKPOINT_OPTION: CommandOption = {
  name: "checkpoint",
  field: "checkpoint_id",
  help: "Id of a checkpoint, or a model's name.",
};
