import { artifactForm } from "../../artifacts/artifact-form";
import { define } from "./declaration";
import {
  DATASET_OPTION,
  dataset,
  datasetId,
  datasetUri,
  name,
  requireOneDataset,
  teacher,
} from "./fields";

const student = name.describe("the model that learns from the answers").optional();

export const distill = define({
  type: "distill",
  payload: {
    fields: { ...dataset, teacher, student_model: student },
    aliases: { teacher_model: "teacher" },
    forms: [
      { dataset_id: datasetId, teacher, student_model: student },
      { dataset_uri: datasetUri, teacher_model: teacher, student_model: student },
    ],
    check: requireOneDataset,
  },
  examples: {
    specification: { dataset_id: "ds_example", teacher: "llama-3-70b" },
    sdk: {
      dataset_uri: "s3://team-data/raw/questions.parquet",
      teacher_model: "llama-3-70b",
      student_model: "llama-3-8b",
    },
  },
  artifact: artifactForm("dataset", "distilled_dataset", "distilled_dataset_id", "ds", "distill"),
  results: { distilled_dataset_id: "dataset id" },
  price: "distilled_tokens",
  usage: { uses: ["tokens"], readsRows: true, rowsWritten: (_payload, rowsRead) => rowsRead },
  details: ["teacher_model", "num_pairs"],
  pipeline: { templates: ["byo-data", "synthetic"], takes: "dataset_id" },
  completion: "artifact",
  handler: { needsTorch: false },
  client: {
    summary: "Distils a dataset (`dataset_id` or `dataset_uri`) with `teacher` or `teacher_model`.",
    parameters: {
      byPlace: ["teacher_model", "student_model", "dataset_uri"],
      byName: ["dataset_id", "teacher"],
    },
    command: {
      about: "Have a teacher answer a dataset's questions.",
      examples: ["--dataset ds_... --teacher llama-3-70b"],
      options: [
        DATASET_OPTION,
        { name: "teacher", field: "teacher", help: "The model that teaches." },
        { name: "student", field: "student_model", help: "The model that will learn." },
      ],
    },
    dashboard: {
      about: "A teacher answers a dataset's questions, for a student to learn from.",
      step: "Have a teacher answer, and keep the good rows.",
      gate: "metrics.tokens_generated > 0",
      color: { light: "#8a55d4", dark: "#b491f5" },
    },
  },
});
