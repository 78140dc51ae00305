import { artifactForm } from "../../artifacts/artifact-form";
import { define } from "./declaration";
import { DATASET_OPTION, datasetUri } from "./fields";

export const audit = define({
  type: "audit",
  payload: { fields: { dataset_uri: datasetUri } },
  examples: {
    specification: { dataset_uri: "s3://team-data/raw/questions.parquet" },
    with_options: {
      dataset_uri: "forge://artifacts/datasets/ds_example/raw.jsonl",
      priority: 10,
      tags: ["nightly"],
      timeout_s: 3600,
    },
  },
  artifact: artifactForm("dataset", "scored_dataset", "dataset_id", "ds", "datasets"),
  results: { dataset_id: "dataset id", dataset_uri: "dataset URI" },
  price: "rows",
  usage: { uses: ["rows"], readsRows: true, counts: "rows_processed" },
  pipeline: { templates: ["byo-data", "synthetic"], takes: "dataset_uri" },
  completion: "artifact",
  handler: { needsTorch: false },
  client: {
    summary: "Scores the rows of a dataset.",
    parameters: { byPlace: ["dataset_uri"], byName: [] },
    command: {
      about: "Score the rows of a dataset.",
      examples: ["--dataset ds_...", "--dataset s3://team-data/raw/questions.parquet"],
      options: [{ ...DATASET_OPTION, field: "dataset_uri" }],
    },
    dashboard: {
      about: "The rows of a dataset are scored.",
      step: "Score the dataset's rows.",
      gate: "quality.clarity_mean >= 0.6",
      color: { light: "#12937f", dark: "#37c3ac" },
    },
  },
});
