import { z } from "zod";
import { artifactForm } from "../../artifacts/artifact-form";
import { define } from "./declaration";
import { DATASET_OPTION, dataset, datasetId, datasetUri, name, requireOneDataset } from "./fields";

/** The value of `epochs` in jobs that don't set it (spec.md, 8). */
const DEFAULT_EPOCHS = 3;

const model = name.describe("the model that is trained, e.g. llama-3-8b");
const epochs = z
  .int()
  .min(1)
  .max(10_000)
  .default(DEFAULT_EPOCHS)
  .describe("passes over the dataset");

export const train = define({
  type: "train",
  payload: {
    fields: { ...dataset, model, epochs },
    aliases: { model_id: "model" },
    forms: [
      { dataset_id: datasetId, model, epochs },
      { dataset_uri: datasetUri, model_id: model, epochs },
    ],
    check: requireOneDataset,
  },
  examples: {
    specification: { dataset_id: "ds_example", model: "llama-3-8b", epochs: 2 },
    sdk: { dataset_uri: "s3://team-data/sft.parquet", model_id: "llama-3-8b" },
    with_resources: {
      dataset_id: "ds_example",
      model: "llama-3-8b",
      resources: { gpu: 1, gpu_type: "A100", memory_gb: 40 },
      params: { lr: 0.0002 },
    },
  },
  // Only this type requires a GPU. All others can also run on a CPU (spec.md 4.7).
  requirements: { gpu: 1 },
  artifact: artifactForm("checkpoint", "checkpoint", "checkpoint_id", "ckpt", "checkpoints"),
  results: { checkpoint_id: "checkpoint id" },
  price: "gpu_hours",
  usage: { uses: [], readsRows: true, growsWith: "epochs" },
  details: ["gpu_type", "num_steps", "dataset_size"],
  pipeline: { templates: ["byo-data", "synthetic"], takes: "dataset_id", sweep: "varied" },
  completion: "artifact",
  handler: { needsTorch: true },
  client: {
    summary: "Trains a checkpoint: give `model` or `model_id`, and `dataset_id` or `dataset_uri`.",
    parameters: {
      byPlace: ["model", "dataset_id", "epochs"],
      byName: ["model_id", "dataset_uri"],
    },
    command: {
      about: "Train a checkpoint.",
      examples: [
        "--model llama-3-8b --dataset ds_... --epochs 3 \\\n" +
          "  --gpu 1 --gpu-type A100 --param lr=1e-4 --tag nightly --wait",
      ],
      options: [
        { name: "model", field: "model", help: "What is trained, e.g. llama-3-8b." },
        DATASET_OPTION,
        { name: "epochs", field: "epochs", help: "Passes over the data; else 3." },
      ],
    },
    dashboard: {
      about: "A model is trained on a dataset. The result is a checkpoint.",
      step: "Train a model on the dataset.",
      gate: "metrics.final_loss < 1",
      color: { light: "#cf6414", dark: "#f29a52" },
    },
  },
});
